import { beforeAll, beforeEach } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import {
  createApiKey,
  type Database,
  type DeliveryClaimRequest,
  type DeliveryResult,
  hashApiKey,
  newId,
  type NewStart,
  recordStart,
  workflowSearchText,
} from '../../src/index.ts'

/** How a runner `a` acquires sessions when nothing limits it. */
export const ACQUIRE_ALL = {
  owner: 'a',
  leaseMs: 60_000,
  slots: 100,
  maxPerOrganization: 100,
  leasedByOrganization: new Map<string, number>(),
}

export const ACCEPTED: DeliveryResult = {
  outcome: 'accepted',
  status: 200,
  reason: null,
  mismatches: null,
  duration_ms: 12,
  answer: null,
}

/** An organization with one workflow that the API can start. */
export interface Startable {
  organizationId: string
  workflowId: string
  apiKeyId: string
}

/** Creates an organization with one startable workflow. */
export async function createStartable(db: Database, options: { autoRun?: AutoRunColumns } = {}): Promise<Startable> {
  const ids = { organizationId: newId(), workflowId: newId(), apiKeyId: newId() }
  const userId = newId()
  const { key, prefix } = createApiKey()
  await db.prisma.organization.create({
    data: {
      id: ids.organizationId,
      name: 'Acme',
      users: { create: { id: userId, email: 'ada@acme.test' } },
      apiKeys: {
        create: {
          id: ids.apiKeyId,
          name: 'ci',
          prefix,
          keySha256: Uint8Array.from(hashApiKey(key)),
          scopes: ['start'],
        },
      },
    },
  })
  await db.prisma.workflow.create({
    data: {
      id: ids.workflowId,
      organizationId: ids.organizationId,
      name: 'Forward orders',
      description: 'Post the order to Order intake',
      searchText: workflowSearchText('Forward orders', 'Post the order to Order intake'),
      scope: 'company_wide',
      isActive: true,
      ...options.autoRun,
      triggers: {
        create: { id: newId(), isActive: true, sourceSlug: 'api', sourceName: 'API', inputMessage: 'New order' },
      },
    },
  })
  return ids
}

interface AutoRunColumns {
  autoRunEnabled: boolean
  autoRunFrequency: string
  autoRunAnchorAt: Date
  autoRunNextAt: Date
}

/** An organization with one startable workflow and a webhook source, for all tests of a file. */
export function useStartable(): Startable & { readonly db: Database; readonly sourceId: string } {
  const database = useTestDatabase()
  const made = {} as Startable & { db: Database; sourceId: string }
  beforeAll(async () => {
    const acme = await createStartable(database.db)
    Object.assign(made, acme, { db: database.db, sourceId: await createSource(database.db, acme) })
  })
  return made
}

/** An organization with one startable workflow, made anew for each test of a file, in a database without others. */
export function useNewStartable(): Startable & { readonly db: Database; readonly url: string } {
  const database = useTestDatabase({ maxConnections: 12 })
  const made = {} as Startable & { db: Database; url: string }
  beforeEach(async () => {
    const { db, url } = database
    await db.pool.query('DELETE FROM deliveries; DELETE FROM sessions; DELETE FROM starts; DELETE FROM organizations')
    Object.assign(made, await createStartable(db), { db, url })
  })
  return made
}

/** A start of the workflow in a new session, without a key. */
export function newStart(
  { workflowId, apiKeyId }: Pick<Startable, 'workflowId' | 'apiKeyId'>,
  change: Partial<NewStart> = {},
): NewStart {
  return {
    startId: newId(),
    workflowId,
    sessionId: null,
    newSessionId: newId(),
    context: 'order_id: A-1',
    apiKeyId,
    requestId: 'request-1',
    idempotency: null,
    ...change,
  }
}

/** Records a start as the gateway does, in the session given or in a new one. */
export async function start(
  db: Database,
  startable: Startable,
  sessionId: string | null = null,
): Promise<{ startId: string; sessionId: string }> {
  const outcome = await recordStart(db, startable.organizationId, newStart(startable, { sessionId }))
  if (outcome.kind !== 'accepted') throw new Error(`The start was refused: ${outcome.kind}`)
  return outcome
}

/** Creates the webhook source `Order intake`. Resolves to its id. */
export async function createSource(db: Database, { organizationId }: Startable): Promise<string> {
  const id = newId()
  const names = { name: 'Order intake', nameKey: 'order intake', description: '' }
  const endpoint = { endpointUrl: 'https://acme.example/orders', exampleRequestBody: { order_id: 'A-1' } }
  await db.prisma.webhookSource.create({ data: { id, organizationId, ...names, ...endpoint } })
  return id
}

/** The claim of a payload, by default one without a run. */
export const newClaim = (
  organizationId: string,
  sourceId: string,
  change: Partial<DeliveryClaimRequest> = {},
): DeliveryClaimRequest => ({
  id: newId(),
  organizationId,
  sourceId,
  requestBody: '{}',
  runId: null,
  requestId: 'r',
  lease: null,
  resend: null,
  ...change,
})

/** Which runs have `not_succeeded_at`, the end of runs that failed or were cancelled, wrongly: none. */
export async function listWrongEnds(db: Database): Promise<object[]> {
  const { rows } = await db.pool.query<object>(
    `SELECT status, finished_at, not_succeeded_at FROM starts WHERE not_succeeded_at IS DISTINCT FROM
       CASE WHEN status IN ('failed', 'cancelled') THEN finished_at END`,
  )
  return rows
}
