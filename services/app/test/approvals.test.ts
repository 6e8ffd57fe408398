import { describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { EXAMPLE, sourceIn, useDataApp } from './support/data-fixtures.ts'

const data = useDataApp()

async function waitingRun() {
  const runId = await data.createRun(await data.createWorkflow('Orders'), { status: 'waiting' })
  const deliveryId = await data.createApproval(runId)
  return { runId, params: { delivery_id: deliveryId } }
}

describe('a payload that waits for an approval', () => {
  test('is shown with the run to all members, and counted on the overview', async () => {
    const { runId, params } = await waitingRun()
    const { member } = data.app.organization
    const { body } = await data.call(member, 'getRun', { params: { run_id: runId } })
    expect(body).toMatchObject({ status: 'waiting', approvals: [{ ...params, status: 'waiting', payload: EXAMPLE }] })
    expect((await data.call(member, 'getOverview')).body.waiting_runs).toBeGreaterThan(0)
    const { body: list } = await data.call(member, 'listRuns', { query: { status: 'waiting' } })
    expect(list.data.map(({ id }) => id)).toContain(runId)
  })

  test('is shown with the URL that it goes to, which the audit log has of its approval', async () => {
    const source = await data.saveSource()
    const runId = await data.createRun(await data.createWorkflow('Orders'), { status: 'waiting' })
    const params = { delivery_id: await data.createApproval(runId, { sourceId: source }) }
    const { admin, member } = data.app.organization
    const { body } = await data.call(member, 'getRun', { params: { run_id: runId } })
    expect(body.approvals).toMatchObject([{ endpoint_url: data.endpoint.url }])
    expect((await data.call(admin, 'approveDelivery', { params })).body.approvals).toMatchObject([
      { endpoint_url: null },
    ])
    const { rows } = await data.app.db.pool.query('SELECT changes FROM audit_events WHERE target_id = $1', [
      params.delivery_id,
    ])
    expect(rows[0].changes).toContainEqual({ field: 'endpoint_url', old: null, new: data.endpoint.url })
  })

  test('is not approved after its URL was edited: the answer says that it is decided, the run why', async () => {
    const source = await data.saveSource()
    const runId = await data.createRun(await data.createWorkflow('Orders'), { status: 'waiting' })
    const params = { delivery_id: await data.createApproval(runId, { sourceId: source }) }
    const { admin } = data.app.organization
    const { body: before } = await data.call(admin, 'getWebhookSource', { params: { source_id: source } })
    const change = {
      ...sourceIn({ name: before.name, endpoint_url: `${data.endpoint.url}/new` }),
      version: before.version,
    }
    expect((await data.call(admin, 'saveWebhookSource', { params: { source_id: source }, body: change })).status).toBe(
      200,
    )
    expect((await data.call(admin, 'approveDelivery', { params })).error.code).toBe('not_waiting')
    const { body } = await data.call(admin, 'getRun', { params: { run_id: runId } })
    const reason = expect.stringContaining('URL of the webhook source was changed')
    expect(body).toMatchObject({
      status: 'queued',
      approvals: [{ status: 'declined', reason, decided_by: 'The admin' }],
    })
    const { rows } = await data.app.db.pool.query(
      `SELECT changes FROM audit_events WHERE target_id = $1 AND action = 'webhook_source.saved' ORDER BY id DESC LIMIT 1`,
      [source],
    )
    expect(rows[0].changes).toContainEqual({ field: 'approvals_ended', old: null, new: '1' })
  })

  test('is declined with a reason and an audit event, and its run is queued again', async () => {
    const { runId, params } = await waitingRun()
    const { admin, id } = data.app.organization
    const { body } = await data.call(admin, 'declineDelivery', { params, body: { reason: ' Wrong total. ' } })
    const approval = { status: 'declined', reason: 'Wrong total.', payload: null, decided_by: expect.any(String) }
    expect(body).toMatchObject({ status: 'queued', approvals: [approval] })
    const { rows } = await data.app.db.pool.query(
      `SELECT actor_id, changes FROM audit_events WHERE organization_id = $1 AND target_id = $2`,
      [id, params.delivery_id],
    )
    expect(rows).toEqual([
      {
        actor_id: admin.userId,
        changes: [
          { field: 'run_id', old: null, new: runId },
          { field: 'reason', old: null, new: 'Wrong total.' },
        ],
      },
    ])
  })

  test('is decided by one of two people at once; the other gets a 409', async () => {
    const { params } = await waitingRun()
    const { admin, owner } = data.app.organization
    const answers = await Promise.all([
      data.call(admin, 'approveDelivery', { params }),
      data.call(owner, 'declineDelivery', { params, body: { reason: null } }),
    ])
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 409]))
    expect(answers.find(({ status }) => status === 409)?.text).toContain('"not_waiting"')
  })

  test('cannot be decided after it expired', async () => {
    const runId = await data.createRun(await data.createWorkflow('Orders'), { status: 'waiting' })
    const params = { delivery_id: await data.createApproval(runId, { expiresAt: new Date(0) }) }
    expect((await data.call(data.app.organization.admin, 'approveDelivery', { params })).status).toBe(409)
    const unknown = { params: { delivery_id: newId() } }
    expect((await data.call(data.app.organization.admin, 'approveDelivery', unknown)).status).toBe(404)
  })
})
