import { randomUUID } from 'node:crypto'
import { waitUntil } from '@workflow-service/testkit'
import type { Console, SignedIn } from './start-console.ts'

/** Ids of what `fill` creates. */
export type Filled = Awaited<ReturnType<typeof fill>>

/**
 * Creates something for every page to show: among others an accepted and a rejected delivery, and a paused workflow.
 * `isLong`: with 200 characters without a break in every text field.
 */
export async function fill({ endpoint, db }: Console, owner: SignedIn, isLong = false) {
  const { call } = owner
  const ids = {
    sourceId: randomUUID(),
    lookupId: randomUUID(),
    workflowId: randomUUID(),
    fileId: randomUUID(),
    userId: randomUUID(),
  }
  const text = (letter: string, words: string) => (isLong ? long(letter) : words)
  const scope = 'company_wide' as const
  const accepted = { body: text('a', 'Order accepted.') }
  endpoint.answerWith(accepted)
  const source = {
    name: text('S', 'Order intake'),
    description: text('d', 'Takes every new order.'),
    endpoint_url: `${endpoint.url}/${isLong ? '%D0%BF'.repeat(33) : 'orders'}`,
    signing_secret: text('s', 'a signing secret of at least 32 bytes'),
    example_request_body: isLong
      ? { order_id: 'X-0000', [long('f')]: long('e') }
      : { order_id: 'X-0000', customer: 'Jane Doe', total: 0.5 },
  }
  await owner.saveSource(source, ids.sourceId)
  const tool = { name: text('t', 'find').slice(0, 128), description: text('d', 'Finds a customer.') }
  await call('saveLookup', {
    params: { lookup_id: ids.lookupId },
    body: {
      name: text('U', 'Customers'),
      kind: 'http',
      url: isLong ? `${endpoint.url}/${long('u')}` : endpoint.url,
      tools: [{ ...tool, path: `/${text('p', 'customers')}` }],
      version: null,
    },
  })
  for (const [version, words] of ['Be brief.', text('i', 'Be brief. Write in English.')].entries()) {
    await call('saveInstructions', { body: { text: words, version: String(version) } })
  }
  const model = text('m', 'fast')
  // No runner has it, so its test waits.
  await db.pool.query(
    `INSERT INTO models (name, model, is_default) VALUES ($1, 'openai:gpt', false) ON CONFLICT DO NOTHING`,
    [model],
  )
  await call('saveModelKey', { body: { model, key: 'sk-0123456789abcdef' } })
  const host = Array.from({ length: 3 }, () => long('d').slice(0, 60)).join('.')
  await call('createUser', {
    body: {
      id: ids.userId,
      email: isLong ? `${long('e').slice(0, 60)}@${host}.test` : 'grace@acme.test',
      first_name: text('F', 'Grace'),
      last_name: text('L', 'Hopper'),
      role: 'member',
    },
  })
  const description = isLong
    ? `Send every ${long('m')} to "${long('S')}".`
    : 'An order came in. Send it to "Order intake".'
  await call('createWorkflow', { body: { id: ids.workflowId, name: text('W', 'Forward orders'), description, scope } })
  await owner.saveTrigger(ids.workflowId, {
    name: text('T', 'From the shop'),
    trigger_source: { slug: 'api', name: text('A', 'API') },
    events: [{ slug: text('g', 'order_created').slice(0, 100), name: text('G', 'Order created') }],
    filters: { [text('x', 'region')]: text('y', 'EU') },
    // The built-in agent reads no other texts before a context.
    input_message: isLong ? `A new ${long('m')}:` : 'A new order:',
    subagent_sources: isLong ? [{ id: randomUUID(), type: long('u').slice(0, 100), name: long('U') }] : [],
  })
  await call('saveFile', {
    params: { workflow_id: ids.workflowId, file_id: ids.fileId },
    body: {
      name: `${text('N', 'about-orders')}.md`,
      path: isLong ? [long('D'), long('E')] : ['docs'],
      content: text('c', '# Orders\n\nAn order has an id.\n'),
      version: null,
    },
  })
  await call('setWorkflowActive', { params: { workflow_id: ids.workflowId }, body: { is_active: true } })
  const report = { name: text('Z', 'Weekly report'), description: 'Report to "Nobody knows".' }
  await call('createWorkflow', { body: { id: randomUUID(), ...report, scope: 'only_me' } })
  await call('createApiKey', {
    body: { id: randomUUID(), name: text('K', 'Shop'), scopes: ['read', 'start'], expires_at: null },
  })
  const start = async (orderId: string) => {
    const context = isLong
      ? JSON.stringify({ order_id: long('1'), [long('f')]: long('2') })
      : `order_id: ${orderId}\ncustomer: Grace Hopper\ntotal: 12.50`
    const started = await owner.start(ids.workflowId, context)
    return { ...started, run: await untilStatus(owner, started.runId, 'succeeded', 'failed') }
  }
  const { runId, sessionId, run } = await start('A-1001')
  endpoint.answerWith({ status: 422, body: text('r', 'The order is not known.') })
  await start('A-1002')
  endpoint.answerWith(accepted)
  const deliveryId = run.deliveries[0]?.id
  if (deliveryId === undefined) throw new Error(`Nothing was sent: ${run.error}`)
  // A job that has ended, without a further delivery.
  const { rows } = await db.pool.query<{ id: string }>(
    `INSERT INTO resend_jobs (id, organization_id, status, delivery_ids, resend_ids, per_second, done, created_by_name,
       finished_at)
     SELECT gen_random_uuid(), organization_id, 'done', ARRAY[id], ARRAY[id], 10, 1, $2, now()
     FROM webhook_sources WHERE id = $1 RETURNING id`,
    [ids.sourceId, text('B', 'Grace')],
  )
  return { ...ids, runId, sessionId, deliveryId, resendJobId: rows[0]?.id ?? '' }
}

/** A text without a place to break it. */
export const long = (letter: string) => letter.repeat(200)

/** Waits until a run has one of these statuses. */
export async function untilStatus({ call }: SignedIn, id: string, ...statuses: string[]) {
  return await waitUntil(async () => {
    const run = await call('getRun', { params: { run_id: id } })
    return statuses.includes(run.status) ? run : undefined
  })
}
