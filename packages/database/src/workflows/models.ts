import type { MediaKind, ModelList } from '@workflow-service/contract'
import { type Connection, type Db, inTransaction } from '../connection/index.ts'

/** An agent that the runners offer, as `models` has it. */
export interface OfferedModel {
  /** What workflows choose: a name of AGENT_MODELS, the value of AGENT_MODEL, or `builtin`. */
  readonly name: string
  /** PROVIDER:NAME, or `builtin`. */
  readonly model: string
  readonly is_default: boolean
  readonly data_region: string | null
  /** That of its prices, as an ISO 4217 code; null without prices. */
  readonly currency: string | null
  readonly fallback: string | null
  /** Those that may use it; empty: all. */
  readonly organization_ids: readonly string[]
  /** What it reads besides text. */
  readonly reads: readonly MediaKind[]
}

/** The model of workflows that choose none; `builtin` before a runner has recorded what it offers. */
export async function readDefaultModel(db: Db): Promise<string> {
  const { rows } = await db.pool.query<{ name: string }>('SELECT name FROM models WHERE is_default')
  return rows[0]?.name ?? 'builtin'
}

/** SQL: whether the built-in agent executes the runs of `workflow`, by its own model or the default of the runners. */
export const IS_BUILTIN = `coalesce(workflow.model, (SELECT name FROM models WHERE is_default), 'builtin') = 'builtin'`

/** Replaces what the runners offer by the settings of this one. */
export async function recordModels(db: Db, models: readonly OfferedModel[]): Promise<void> {
  await inTransaction(db, async (client) => {
    // Runners that start together would wait for each other's rows in different orders.
    await client.query('LOCK TABLE models IN SHARE ROW EXCLUSIVE MODE')
    await client.query('DELETE FROM models')
    await client.query(
      `INSERT INTO models (name, model, is_default, data_region, currency, fallback, organization_ids, reads)
       SELECT name, model, is_default, data_region, currency, fallback, organization_ids, reads
       FROM json_to_recordset($1::json) AS row (name text, model text, is_default boolean, data_region text,
         currency text, fallback text, organization_ids uuid[], reads text[])`,
      [JSON.stringify(models)],
    )
  })
}

/** What the runners offer to the organization, by name, with the fallbacks of its runs. */
export async function listModels(db: Connection, organizationId: string): Promise<ModelList['data']> {
  const { rows } = await db.pool.query<ModelList['data'][number] & { is_usable: boolean }>(
    `SELECT model.name, model.model, model.is_default, model.data_region, model.currency, model.fallback, model.reads,
       model.organization_ids = '{}' OR $1 = ANY (model.organization_ids) AS is_usable,
       organization.offered_models = '{}' OR model.name = ANY (organization.offered_models) AS is_offered
     FROM models AS model JOIN organizations AS organization ON organization.id = $1
     ORDER BY model.name`,
    [organizationId],
  )
  const findUsable = (name: string | null): string | null => {
    const model = rows.find((each) => each.name === name)
    return !model || model.is_usable ? name : findUsable(model.fallback)
  }
  return rows.flatMap(({ is_usable: isUsable, ...model }) =>
    isUsable ? [{ ...model, fallback: findUsable(model.fallback) }] : [],
  )
}
