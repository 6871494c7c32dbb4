/** Whether the JSON that was written so far ends within a string, so that what follows is known to be text of it. */
export class JsonPosition {
  inString = false
  #isEscaped = false

  /** Reads on over text that the template wrote itself. What is no JSON is read as well as it goes. */
  follow(text: string): void {
    for (let index = 0; index < text.length; index += 1) {
      const character = text[index]
      if (this.#isEscaped) this.#isEscaped = false
      else if (character === '"') this.inString = !this.inString
      else if (character === '\\') this.#isEscaped = this.inString
    }
  }
}
