import type { QueryConfig } from 'pg'
import type { Database } from '../../src/connection/client.ts'

/** An executed node of a plan. */
export interface PlanNode {
  readonly type: string
  readonly relation: string | undefined
  readonly index: string | undefined
  /** Rows that it read, including those that it filtered out. */
  readonly rowsRead: number
  /** How often it was executed. */
  readonly loops: number
}

interface RawNode {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Actual Rows'?: number
  'Actual Loops'?: number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  Plans?: RawNode[]
}

/**
 * Explains the one statement that a call sends, with the plan that the call would have. Returns the nodes that were
 * executed. The statement runs inside a transaction that is rolled back.
 */
export async function explain(
  db: Pick<Database, 'pool'>,
  call: (on: Pick<Database, 'pool'>) => Promise<unknown>,
): Promise<PlanNode[]> {
  let plan: PlanNode[] = []
  const query = async (first: string | QueryConfig, second?: unknown[]) => {
    const { text, values = second } = typeof first === 'string' ? { text: first } : first
    const client = await db.pool.connect()
    try {
      await client.query('BEGIN')
      const { rows } = await client.query<{ 'QUERY PLAN': { Plan: RawNode }[] }>(
        `EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) ${text}`,
        values,
      )
      plan = flatten(rows[0]!['QUERY PLAN'][0]!.Plan).filter(({ loops }) => loops > 0)
    } finally {
      await client.query('ROLLBACK')
      client.release()
    }
    return { rows: [], rowCount: 0 }
  }
  await call({ pool: { query } as unknown as Database['pool'] })
  return plan
}

/** How many rows of a table were read in all. */
export function rowsReadOf(plan: readonly PlanNode[], relation: string): number {
  return plan.filter((node) => node.relation === relation).reduce((sum, node) => sum + node.rowsRead, 0)
}

/** The tables that were scanned sequentially. */
export function sequentialScans(plan: readonly PlanNode[]): string[] {
  return plan.filter(({ type }) => type === 'Seq Scan').map(({ relation }) => String(relation))
}

function flatten(node: RawNode): PlanNode[] {
  const loops = node['Actual Loops'] ?? 0
  const perLoop =
    (node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  return [
    {
      type: node['Node Type'],
      relation: node['Relation Name'],
      index: node['Index Name'],
      rowsRead: perLoop * loops,
      loops,
    },
    ...(node.Plans ?? []).flatMap(flatten),
  ]
}
