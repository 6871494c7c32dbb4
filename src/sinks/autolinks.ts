/**
 * Upstream text that no program makes into something to press. Mail programs and chats find addresses and people in
 * plain words by themselves; an invisible joiner where such a thing would begin keeps them words. What it
 * costs is that a copied address holds the joiner too. At most it doubles a text.
 */
export function withoutAutolinks(text: string): string {
  return text
    .replace(/:(?=\/\/)/g, `:${joiner}`)
    .replace(/(?<=[\p{L}\p{N}_-])[.。．](?=\p{L}{2}|xn--)/giu, (dot) => `${dot}${joiner}`)
    .replace(/@(?=[\p{L}\p{N}_])/gu, `@${joiner}`)
}

export const joiner = '\u2060'
