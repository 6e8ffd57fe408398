import { beforeEach, describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { PAYLOAD } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher()
let sourceId: string
beforeEach(async () => {
  sourceId = await dispatcher.saveSource({ approval: 'always' })
  dispatcher.endpoint.requests.length = 0
})

/** Inserts an approval as a person gives it; the payload is sent under its id. */
async function approve(id: string, { status = 'approved', payload = PAYLOAD } = {}): Promise<void> {
  const { organizationId } = dispatcher
  const { pool } = dispatcher.db
  const [workflowId, sessionId, runId] = [newId(), await dispatcher.createSession(1), newId()]
  await pool.query(
    `INSERT INTO workflows (id, organization_id, name, description, scope, search_text, is_active) VALUES ($1, $2, 'W', '', 'company_wide', 'w', true)`,
    [workflowId, organizationId],
  )
  await pool.query(
    `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id)
     VALUES ($1, $2, $3, $4, 1, 'api', '', 'r')`,
    [runId, organizationId, workflowId, sessionId],
  )
  await pool.query(
    `INSERT INTO approvals (delivery_id, organization_id, run_id, source_id, source_name, request_body, status, expires_at, decided_at)
     VALUES ($1, $2, $3, $4, 'Orders', $5, $6, now(), CASE WHEN $6 <> 'waiting' THEN now() END)`,
    [id, organizationId, runId, sourceId, JSON.stringify(payload), status],
  )
}

const send = (id: string) => dispatcher.send(id, { source_id: sourceId })
const REFUSED = { status: 409, body: { error: { code: 'approval_required' } } }

describe('a payload to a source that asks for approval', () => {
  test.each([
    ['has no approval', null],
    ['waits', { status: 'waiting' }],
    ['was declined', { status: 'declined' }],
    ['was approved with other values', { payload: { ...PAYLOAD, total: -1 } }],
  ])('is refused and not recorded if it %s', async (_what, approval) => {
    const id = newId()
    if (approval) await approve(id, approval)
    expect(await send(id)).toMatchObject(REFUSED)
    expect(dispatcher.endpoint.requests).toEqual([])
    expect(await dispatcher.db.prisma.delivery.count({ where: { id } })).toBe(0)
  })

  test('is sent once under the id that was approved, and then again by a person without another approval', async () => {
    const id = newId()
    await approve(id)
    expect(await send(id)).toMatchObject({ status: 200, body: { outcome: 'accepted' } })
    expect(await send(id)).toMatchObject({ status: 200, body: { outcome: 'accepted' } })
    expect(await send(newId())).toMatchObject(REFUSED)
    const { organizationId } = dispatcher
    const resent = { organization_id: organizationId, resend_of: id, sent_by: newId() }
    const answer = await dispatcher.call('PUT', `/internal/deliveries/${newId()}`, resent)
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'accepted' } })
    expect(dispatcher.endpoint.requests).toHaveLength(2)
  })

  test('needs another first approval after a save with another URL, not with another description', async () => {
    await dispatcher.saveSource({ approval: 'first' }, 'never', sourceId)
    const id = newId()
    await approve(id)
    await send(id)
    await dispatcher.saveSource({ description: 'Other words.' }, 'never', sourceId)
    expect(await send(newId())).toMatchObject({ status: 200 })
    await dispatcher.saveSource({ endpoint_url: `${dispatcher.endpoint.url}/other` }, 'never', sourceId)
    expect(await send(newId())).toMatchObject(REFUSED)
  })
})
