import { PrismaPg } from '@prisma/adapter-pg'
import { Pool, type PoolClient, type QueryConfig } from 'pg'
import { poolForPrisma } from '../../src/connection/prisma-pool.ts'
import { PrismaClient } from '../../src/generated/client.ts'
import type { Database } from '../../src/index.ts'

const NOTHING = { rows: [], fields: [], rowCount: 0 }

const databases = new WeakMap<PoolClient, Pick<Database, 'pool' | 'prisma'>>()

/**
 * A database whose statements all run on this connection, those of transactions in the transaction that the test has
 * begun. It is created once for a connection: a client of Prisma costs as much as many statements.
 */
export function onConnection(client: PoolClient): Pick<Database, 'pool' | 'prisma'> {
  const database = databases.get(client) ?? createDatabaseOn(client)
  databases.set(client, database)
  return database
}

function createDatabaseOn(client: PoolClient): Pick<Database, 'pool' | 'prisma'> {
  let previous: Promise<unknown> = Promise.resolve()
  /** Reads that begin at once follow each other: a connection takes one statement at a time. */
  const query = async (statement: string | QueryConfig, values?: unknown[]) => {
    const text = typeof statement === 'string' ? statement : statement.text
    if (/^(BEGIN|COMMIT|ROLLBACK)$/.test(text)) return NOTHING
    const result = previous.then(() => client.query(statement, values))
    previous = result.catch(() => {})
    return await result
  }
  const inner = { query, on: () => {}, off: () => {}, removeListener: () => {}, release: () => {} }
  const connect = async () => await Promise.resolve(inner)
  const pool = Object.assign(Object.create(new Pool()) as Pool, { query, connect })
  return { pool, prisma: new PrismaClient({ adapter: new PrismaPg(poolForPrisma(pool)) }) }
}
