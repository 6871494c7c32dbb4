/** As one word of a shell, also where the text has blanks or signs that mean something to it. */
export function shellWord(text: string): string {
  return /^[\w.:/@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
