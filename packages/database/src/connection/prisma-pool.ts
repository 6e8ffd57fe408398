import { AsyncLocalStorage } from 'node:async_hooks'
import type { Pool, PoolClient } from 'pg'

/** Tells `inPrismaTransaction` on which connection Prisma began its transaction, which Prisma itself does not. */
export const beginning = new AsyncLocalStorage<{ client?: PoolClient }>()

/** Returns the pool as Prisma's adapter uses it, which connects for a transaction only. */
export function poolForPrisma(pool: Pool): Pool {
  const connect = async (): Promise<PoolClient> => {
    const client = await pool.connect()
    const begun = beginning.getStore()
    if (begun) begun.client ??= client
    return client
  }
  return new Proxy(pool, {
    get: (target, name) => {
      if (name === 'connect') return connect
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
