import type { RedisClient } from '../../src/store/connection/redis.ts'

/** The same client, which notes the name of each command (and of any other function) that it is asked for in `asked`. */
export function noting<Client extends RedisClient>(client: Client, asked: string[]): Client {
  return new Proxy(client, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return (...given: unknown[]) => {
        asked.push(String(name))
        return value.apply(target, given)
      }
    },
  })
}
