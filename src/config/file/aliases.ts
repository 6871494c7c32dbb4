import { type Alias, type Document, type Node, visit } from 'yaml'

/**
 * Which node each alias of a document refers to: the last one above it with its anchor. All are found in one pass: the
 * library itself reads the whole document again for every alias.
 */
export function aliasTargets(document: Document): ReadonlyMap<Alias, Node> {
  const anchors = new Map<string, Node>()
  const targets = new Map<Alias, Node>()
  const note = (_: unknown, node: Node & { anchor?: string }) => {
    if (node.anchor) anchors.set(node.anchor, node)
  }
  visit(document, {
    Scalar: note,
    Collection: note,
    Alias(_, alias) {
      const target = anchors.get(alias.source)
      if (target !== undefined) targets.set(alias, target)
    },
  })
  return targets
}
