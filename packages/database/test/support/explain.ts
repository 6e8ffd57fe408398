import type { Database, NamedStatement } from '../../src/client.ts'

/** What Postgres did at one place of a plan. */
export interface PlanNode {
  readonly type: string
  readonly relation: string | undefined
  readonly index: string | undefined
  /** Rows that it read, those that it threw away included. */
  readonly rowsRead: number
  /** How often it ran; 0 when it was not needed. */
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

/** Runs the statement, inside a transaction that is rolled back, and tells every place of its plan that ran. */
export async function explain(
  db: Pick<Database, 'pool'>,
  statement: NamedStatement,
  values: unknown[],
): Promise<PlanNode[]> {
  const client = await db.pool.connect()
  try {
    await client.query('BEGIN')
    const { rows } = await client.query<{ 'QUERY PLAN': { Plan: RawNode }[] }>(
      `EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) ${statement.text}`,
      values,
    )
    return flatten(rows[0]!['QUERY PLAN'][0]!.Plan).filter(({ loops }) => loops > 0)
  } finally {
    await client.query('ROLLBACK')
    client.release()
  }
}

/** How many rows of a table were read in all. */
export function rowsReadOf(plan: readonly PlanNode[], relation: string): number {
  return plan.filter((node) => node.relation === relation).reduce((sum, node) => sum + node.rowsRead, 0)
}

/** The tables that were read from end to end. */
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
