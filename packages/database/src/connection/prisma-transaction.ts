import type { PoolClient } from 'pg'
import type { Prisma } from '../generated/client.ts'
import type { PrismaDb, Queryable } from './client.ts'
import { isReadOnly } from './database-unavailable.ts'
import { beginning } from './prisma-pool.ts'

/**
 * One transaction on one connection: for Prisma, and for the statements that Prisma cannot express, such as the lock of
 * a row.
 */
export interface Transaction extends Queryable {
  readonly prisma: Prisma.TransactionClient
}

/** Each statement and each wait for a lock has its own limit, which is shorter. */
const MAX_TRANSACTION_MS = 60_000
/** Later than the pool's own limit, whose error says more. */
const MAX_CONNECT_MS = 10_000

/** As `inTransaction`, with Prisma's client of the transaction. Statements by hand run on its connection. */
export async function inPrismaTransaction<Result>(
  db: PrismaDb,
  work: (tx: Transaction) => Promise<Result>,
): Promise<Result> {
  const begun: { client?: PoolClient } = {}
  const transaction = () =>
    db.prisma.$transaction(
      async (prisma) => {
        const { client } = begun
        if (!client) throw new Error('Prisma began its transaction on an unknown connection')
        try {
          return await work({ prisma, query: client.query.bind(client) })
        } catch (error) {
          // Prisma gives the connection back without the error, with which the pool closes it.
          const release = client.release.bind(client)
          if (isReadOnly(error)) client.release = () => release(error)
          throw error
        }
      },
      { maxWait: MAX_CONNECT_MS, timeout: MAX_TRANSACTION_MS },
    )
  return await beginning.run(begun, transaction)
}
