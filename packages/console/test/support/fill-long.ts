import { randomUUID } from 'node:crypto'
import { waitUntil } from '@workflow-service/testkit'
import { type Filled, insertEndedResends, saveModelKey } from './fill.ts'
import type { Console, SignedIn } from './start-console.ts'

/** A text without a place to break it. */
const long = (letter: string) => letter.repeat(200)

/**
 * Creates something for every page to show, like `fill`, with 200 characters without a break in every text field: among
 * others an accepted, a rejected, a declined and a waiting run. `fileId` and `eventId` are for the drawers of a file
 * and of the audit log, `warnedId` is a workflow with warnings.
 */
export async function fillLong(
  { endpoint, db }: Pick<Console, 'endpoint' | 'db'>,
  owner: SignedIn,
): Promise<Filled & { readonly fileId: string; readonly eventId: string; readonly warnedId: string }> {
  const { call } = owner
  const ids = {
    sourceId: randomUUID(),
    lookupId: randomUUID(),
    workflowId: randomUUID(),
    fileId: randomUUID(),
    warnedId: randomUUID(),
  }
  const saveSource = async (id: string, name: string, approval: 'none' | 'always') => {
    const values = {
      name,
      description: long('d'),
      endpoint_url: `${endpoint.url}/${'%D0%BF'.repeat(33)}`,
      signing_secret: long('s'),
      example_request_body: { order_id: 'X-0000', [long('f')]: long('e') },
      approval,
    }
    await owner.saveSource(values, id)
  }
  const createWorkflow = async (id: string, name: string, description: string) => {
    await call('createWorkflow', { body: { id, name, description, scope: 'company_wide' } })
  }
  const start = async (workflowId: string) =>
    await owner.start(workflowId, JSON.stringify({ order_id: long('1'), [long('f')]: long('2') }))
  const untilStatus = async (id: string, ...statuses: string[]) =>
    await waitUntil(async () => {
      const run = await call('getRun', { params: { run_id: id } })
      return statuses.includes(run.status) ? run : undefined
    })

  endpoint.answerWith({ body: long('a') })
  const { version } = await call('getOrganization')
  await call('saveOrganization', { body: { name: long('O'), version } })
  await call('saveMe', { body: { name: long('P'), email: (await call('getMe')).account.email } })
  const userId = randomUUID()
  const email = `${long('e').slice(0, 60)}@${Array.from({ length: 3 }, () => long('d').slice(0, 60)).join('.')}.test`
  const names = { first_name: long('F'), last_name: long('L') }
  await call('createUser', { body: { id: userId, email, ...names, role: 'member' } })
  await call('createApiKey', {
    body: { id: randomUUID(), name: long('K'), scopes: ['read', 'start'], expires_at: null },
  })
  await saveSource(ids.sourceId, long('S'), 'none')
  const tool = { name: 't'.repeat(128), description: long('d'), path: `/${long('p')}` }
  const lookup = {
    name: long('U'),
    kind: 'http' as const,
    url: `${endpoint.url}/${long('u')}`,
    tools: [tool],
    version: null,
  }
  await call('saveLookup', { params: { lookup_id: ids.lookupId }, body: lookup })
  await saveModelKey({ db }, owner, long('m'))
  await call('saveInstructions', { body: { text: long('i'), version: '0' } })
  await createWorkflow(ids.workflowId, long('W'), `Send every ${long('m')} to "${long('S')}".`)
  const params = { workflow_id: ids.workflowId }
  await owner.saveTrigger(ids.workflowId, {
    name: long('T'),
    trigger_source: { slug: 'api', name: long('A') },
    events: [{ slug: long('g').slice(0, 100), name: long('G') }],
    filters: { [long('x')]: long('y') },
    // The built-in agent reads no other texts before a context.
    input_message: `A new ${long('m')}:`,
    subagent_sources: [{ id: randomUUID(), type: long('u').slice(0, 100), name: long('U') }],
  })
  await call('saveFile', {
    params: { ...params, file_id: ids.fileId },
    body: { name: `${long('N')}.md`, path: [long('D'), long('E')], content: long('c'), version: null },
  })
  const { users_version: usersVersion } = await call('getWorkflow', { params })
  await call('saveWorkflowUsers', { params, body: { user_ids: [userId], version: usersVersion } })
  await call('setWorkflowActive', { params, body: { is_active: true } })
  const { runId, sessionId } = await start(ids.workflowId)
  const run = await untilStatus(runId, 'succeeded', 'failed')
  endpoint.answerWith({ status: 422, body: long('r') })
  await untilStatus((await start(ids.workflowId)).runId, 'failed')
  endpoint.answerWith({ body: long('a') })

  const [asking, asked] = [randomUUID(), randomUUID()]
  await saveSource(asking, long('Q'), 'always')
  await createWorkflow(asked, long('V'), `Send the text to "${long('Q')}".`)
  // Refused by the built-in agent, with a warning.
  await createWorkflow(ids.warnedId, long('X'), `Send the text to "${long('S')}" and "${long('Y')}". ${long('t')}`)
  await owner.saveTrigger(asked)
  await call('setWorkflowActive', { params: { workflow_id: asked }, body: { is_active: true } })
  for (const isDeclined of [true, false]) {
    const { runId: id } = await start(asked)
    const { approvals } = await untilStatus(id, 'waiting')
    const approval = { delivery_id: approvals[0]?.delivery_id ?? '' }
    if (isDeclined) await call('declineDelivery', { params: approval, body: { reason: long('R') } })
    if (isDeclined) await untilStatus(id, 'failed')
  }
  const { data: events } = await call('listAuditEvents')
  const eventId = events.find(({ action }) => action === 'webhook_source.saved')?.id ?? ''
  const deliveryId = run.deliveries[0]?.id
  if (deliveryId === undefined) throw new Error(`Nothing was sent: ${run.error}`)
  const resendJobId = await insertEndedResends(db, ids.sourceId, long('B'))
  return { ...ids, runId, sessionId, deliveryId, eventId, resendJobId }
}
