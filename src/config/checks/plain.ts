/** Whether what goes to this address can be read on its way. */
export function isPlain(address: string): boolean {
  const url = new URL(address)
  return url.protocol === 'http:' && !isLoopback(url.hostname.replace(/^\[|\]$/g, ''))
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}
