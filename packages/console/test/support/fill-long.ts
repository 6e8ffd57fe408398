import { randomUUID } from 'node:crypto'
import { fill, long, untilStatus } from './fill.ts'
import type { Console, SignedIn } from './start-console.ts'

/**
 * Creates something for every page to show, with long texts (`fill`), also a declined and a waiting run. `eventId` is
 * for the drawer of the audit log, `warnedId` is a workflow with warnings.
 */
export async function fillLong(console: Console, owner: SignedIn) {
  const { call } = owner
  const scope = 'company_wide' as const
  const { version } = await call('getOrganization')
  await call('saveOrganization', { body: { name: long('O'), version } })
  await call('saveMe', { body: { name: long('P') } })
  const filled = await fill(console, owner, true)
  const params = { workflow_id: filled.workflowId }
  const { users_version: usersVersion } = await call('getWorkflow', { params })
  await call('saveWorkflowUsers', { params, body: { user_ids: [filled.userId], version: usersVersion } })

  const [asked, warnedId] = [randomUUID(), randomUUID()]
  const source = await call('getWebhookSource', { params: { source_id: filled.sourceId } })
  const { description, endpoint_url, example_request_body } = source
  await owner.saveSource({ name: long('Q'), description, endpoint_url, example_request_body, approval: 'always' })
  const ask = `Send the text to "${long('Q')}".`
  await call('createWorkflow', { body: { id: asked, name: long('V'), description: ask, scope } })
  // Refused by the built-in agent, with a warning.
  const warned = `Send the text to "${long('S')}" and "${long('Y')}". ${long('t')}`
  await call('createWorkflow', { body: { id: warnedId, name: long('X'), description: warned, scope } })
  await owner.saveTrigger(asked)
  await call('setWorkflowActive', { params: { workflow_id: asked }, body: { is_active: true } })
  for (const isDeclined of [true, false]) {
    const { runId } = await owner.start(asked, JSON.stringify({ order_id: long('1'), [long('f')]: long('2') }))
    const { approvals } = await untilStatus(owner, runId, 'waiting')
    const approval = { delivery_id: approvals[0]?.delivery_id ?? '' }
    if (isDeclined) await call('declineDelivery', { params: approval, body: { reason: long('R') } })
    if (isDeclined) await untilStatus(owner, runId, 'failed')
  }
  const { data: events } = await call('listAuditEvents')
  const eventId = events.find(({ action }) => action === 'webhook_source.saved')?.id ?? ''
  return { ...filled, eventId, warnedId }
}
