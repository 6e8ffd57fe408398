import type { Connection } from './client.ts'

/** A row whose columns are named as in the contract; pg returns times as dates. */
export type RowOf<Out> = { readonly [Name in keyof Out]: Out[Name] | Date }

/** Returns a row with its times as texts. */
export function datesToIso<Out extends object>(row: RowOf<Out>): Out {
  const entries = Object.entries<unknown>(row).map(([name, value]) => [
    name,
    value instanceof Date ? value.toISOString() : value,
  ])
  return Object.fromEntries(entries) as Out
}

/** Runs a query whose columns are named as in the contract. Resolves to its rows, with their times as texts. */
export async function queryRows<Out extends object>(
  db: Connection,
  query: string | { readonly name: string; readonly text: string },
  values: unknown[],
): Promise<Out[]> {
  const { rows } = await db.pool.query<RowOf<Out>>(
    typeof query === 'string' ? { text: query, values } : { ...query, values },
  )
  return rows.map((row) => datesToIso<Out>(row))
}
