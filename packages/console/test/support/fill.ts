import { randomUUID } from 'node:crypto'
import { waitUntil } from '@workflow-service/testkit'
import type { Console, SignedIn } from './start-console.ts'

/** Ids of what `fill` creates. */
export interface Filled {
  readonly sourceId: string
  readonly lookupId: string
  readonly workflowId: string
  readonly deliveryId: string
  readonly runId: string
  readonly sessionId: string
  readonly resendJobId: string
}

/**
 * Creates something for every page to show: among others an accepted and a rejected delivery, and a paused workflow.
 */
export async function fill({ endpoint, db }: Pick<Console, 'endpoint' | 'db'>, owner: SignedIn): Promise<Filled> {
  const { call } = owner
  const ids = { sourceId: randomUUID(), lookupId: randomUUID(), workflowId: randomUUID() }
  endpoint.answerWith({ body: 'Order accepted.' })
  const source = {
    name: 'Order intake',
    description: 'Takes every new order.',
    endpoint_url: `${endpoint.url}/orders`,
    signing_secret: 'a signing secret of at least 32 bytes',
    example_request_body: { order_id: 'X-0000', customer: 'Jane Doe', total: 0.5 },
  }
  await owner.saveSource(source, ids.sourceId)
  await call('saveLookup', {
    params: { lookup_id: ids.lookupId },
    body: {
      name: 'Customers',
      kind: 'http',
      url: endpoint.url,
      tools: [{ name: 'find', description: 'Finds a customer.', path: '/customers' }],
      version: null,
    },
  })
  for (const [version, text] of ['Be brief.', 'Be brief. Write in English.'].entries()) {
    await call('saveInstructions', { body: { text, version: String(version) } })
  }
  await saveModelKey({ db }, owner, 'fast')
  await call('createUser', {
    body: { id: randomUUID(), email: 'grace@acme.test', first_name: 'Grace', last_name: 'Hopper', role: 'member' },
  })
  await call('createWorkflow', {
    body: {
      id: ids.workflowId,
      name: 'Forward orders',
      description: 'An order came in. Send it to "Order intake".',
      scope: 'company_wide',
    },
  })
  await owner.saveTrigger(ids.workflowId, {
    name: 'From the shop',
    events: [{ slug: 'order_created', name: 'Order created' }],
    filters: { region: 'EU' },
    input_message: 'A new order:',
  })
  await call('saveFile', {
    params: { workflow_id: ids.workflowId, file_id: randomUUID() },
    body: { name: 'about-orders.md', path: ['docs'], content: '# Orders\n\nAn order has an id.\n', version: null },
  })
  await call('setWorkflowActive', { params: { workflow_id: ids.workflowId }, body: { is_active: true } })
  await call('createWorkflow', {
    body: { id: randomUUID(), name: 'Weekly report', description: 'Report to "Nobody knows".', scope: 'only_me' },
  })
  await call('createApiKey', {
    body: { id: randomUUID(), name: 'Shop', scopes: ['read', 'start'], expires_at: null },
  })
  const start = async (orderId: string) => {
    const started = await owner.start(ids.workflowId, `order_id: ${orderId}\ncustomer: Grace Hopper\ntotal: 12.50`)
    return { ...started, run: await untilEnded(call, started.runId) }
  }
  const { runId, sessionId, run } = await start('A-1001')
  endpoint.answerWith({ status: 422, body: 'The order is not known.' })
  await start('A-1002')
  endpoint.answerWith({ body: 'Order accepted.' })
  const deliveryId = run.deliveries[0]?.id ?? ''
  return { ...ids, runId, sessionId, deliveryId, resendJobId: await insertEndedResends(db, ids.sourceId) }
}

/** Saves a key of the organization's own for a model that no runner has, so that its test waits. */
export async function saveModelKey({ db }: Pick<Console, 'db'>, { call }: SignedIn, model: string): Promise<void> {
  await db.pool.query(
    `INSERT INTO models (name, model, is_default) VALUES ($1, 'openai:gpt', false) ON CONFLICT DO NOTHING`,
    [model],
  )
  await call('saveModelKey', { body: { model, key: 'sk-0123456789abcdef' } })
}

/** Inserts a job that has ended, without a further delivery. */
export async function insertEndedResends({ pool }: Console['db'], sourceId: string, by = 'Grace'): Promise<string> {
  const { rows } = await pool.query<{ id: string }>(
    `INSERT INTO resend_jobs (id, organization_id, status, delivery_ids, resend_ids, per_second, done, created_by_name,
       finished_at)
     SELECT gen_random_uuid(), organization_id, 'done', ARRAY[id], ARRAY[id], 10, 1, $2, now()
     FROM webhook_sources WHERE id = $1 RETURNING id`,
    [sourceId, by],
  )
  return rows[0]?.id ?? ''
}

async function untilEnded(call: SignedIn['call'], runId: string) {
  return await waitUntil(async () => {
    const run = await call('getRun', { params: { run_id: runId } })
    return run.finished_at === null ? undefined : run
  })
}
