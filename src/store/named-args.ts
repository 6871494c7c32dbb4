/**
 * The arguments of a script that has many, by name. One list gives both sides their order, so that no argument can be
 * left out or stand in another's place. A script reads each as a text.
 */
export function namedArgs<const N extends string>(...names: readonly N[]) {
  return {
    /** Lua: a local variable for each. */
    locals: `local ${names.join(', ')} = unpack(ARGV, 1, ${names.length})`,
    count: names.length,
    inOrder: (values: Readonly<Record<N, string | number>>) => names.map((name) => values[name]),
  }
}
