/**
 * Text of the API in which no program finds a link. Mail programs and chats turn addresses and names in plain text into
 * links by themselves (autolinks); an invisible joiner where one would begin prevents that. The price: an address that
 * is copied contains the joiner too. A text becomes at most twice as long.
 */
export function withoutAutolinks(text: string): string {
  return text
    .replace(/:(?=\/\/)/g, `:${joiner}`)
    .replace(/(?<=[\p{L}\p{N}_-])[.。．](?=\p{L}{2}|xn--)/giu, (dot) => `${dot}${joiner}`)
    .replace(/@(?=[\p{L}\p{N}_])/gu, `@${joiner}`)
}

export const joiner = '\u2060'
