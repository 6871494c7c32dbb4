/**
 * Upstream text that no program makes into something to press. Mail programs and chats find addresses, people, tags and
 * commands in plain words by themselves; an invisible joiner where such a thing would begin keeps them words. What it
 * costs is that a copied address holds the joiner too. At most it doubles a text.
 */
export function inert(text: string): string {
  return text
    .replace(/:(?=\/\/)/g, `:${joiner}`)
    .replace(/(?<=[\p{L}\p{N}_-])[.。．](?=\p{L}{2}|xn--)/giu, (dot) => `${dot}${joiner}`)
    .replace(/[@#](?=[\p{L}\p{N}_])/gu, (mark) => `${mark}${joiner}`)
    .replace(/(?<![\p{L}\p{N}])[$/](?=[a-z])/giu, (mark) => `${mark}${joiner}`)
}

const joiner = '\u2060'
