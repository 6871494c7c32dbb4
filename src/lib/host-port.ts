/** `host:port`, with brackets around an IPv6 address, whose parts have colons between them too. */
export function hostPort({ host, port }: { readonly host: string; readonly port: number }): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
