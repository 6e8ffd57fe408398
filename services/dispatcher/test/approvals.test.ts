import { beforeEach, describe, expect, test } from '@jest/globals'
import { claimDeliveries, inTransaction, newDeliveryId, newId } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
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
const resend = (id: string, of: string, sentBy: string | null) =>
  dispatcher.call('PUT', `/internal/deliveries/${id}`, {
    organization_id: dispatcher.organizationId,
    resend_of: of,
    sent_by: sentBy,
  })
const moveTo = (path: string) =>
  dispatcher.saveSource({ endpoint_url: `${dispatcher.endpoint.url}${path}`, approval: 'always' }, 'never', sourceId)
const statusOf = async (id: string) =>
  (await dispatcher.db.prisma.approval.findUniqueOrThrow({ where: { deliveryId: id } })).status

async function addUser(role: 'owner' | 'admin' | 'member', isActive = true): Promise<string> {
  const id = newId()
  const email = `${id}@acme.test`
  await dispatcher.db.pool.query(
    `INSERT INTO users (id, organization_id, email, role, deactivated_at)
     VALUES ($1, $2, $3, $4, CASE WHEN $5 THEN NULL ELSE now() END)`,
    [id, dispatcher.organizationId, email, role, isActive],
  )
  return id
}

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

  test('is sent once under the id that was approved', async () => {
    const id = newId()
    await approve(id)
    expect(await send(id)).toMatchObject({ status: 200, body: { outcome: 'accepted' } })
    expect(await send(id)).toMatchObject({ status: 200, body: { outcome: 'accepted' } })
    expect(await send(newId())).toMatchObject(REFUSED)
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })

  test('is sent again only by a person who may approve it, or the operator', async () => {
    const id = newId()
    await approve(id)
    await send(id)
    dispatcher.endpoint.requests.length = 0
    for (const refused of [await addUser('member'), await addUser('admin', false), newId()]) {
      const resent = newId()
      expect(await resend(resent, id, refused)).toMatchObject(REFUSED)
      expect(await dispatcher.isRecorded(resent)).toBe(false)
    }
    expect(dispatcher.endpoint.requests).toEqual([])
    for (const allowed of [await addUser('admin'), await addUser('owner'), null]) {
      expect(await resend(newId(), id, allowed)).toMatchObject({ status: 200, body: { outcome: 'accepted' } })
    }
    await dispatcher.saveSource({ approval: 'none' }, 'never', sourceId)
    expect(await resend(newId(), id, await addUser('member'))).toMatchObject({ status: 200 })
    expect(dispatcher.endpoint.requests).toHaveLength(4)
  })

  test('keeps its id until it is sent: nothing can be sent again under it', async () => {
    const [earlier, id] = [newId(), newId()]
    await approve(earlier)
    await send(earlier)
    await approve(id, { status: 'waiting' })
    const conflict = { status: 409, body: { error: { code: 'idempotency_conflict' } } }
    // The second is one that a run has planned, and that asks for no approval.
    for (const taken of [id, newDeliveryId()]) expect(await resend(taken, earlier, null)).toMatchObject(conflict)
    await dispatcher.db.pool.query(
      `UPDATE approvals SET status = 'approved', decided_at = now() WHERE delivery_id = $1`,
      [id],
    )
    expect(await send(id)).toMatchObject({ status: 200, body: { outcome: 'accepted' } })
  })

  test('is not sent to another URL than was approved: an edit of the URL ends the approval, another edit does not', async () => {
    const [sent, waiting, approved] = [newId(), newId(), newId()]
    await approve(sent)
    await send(sent)
    await approve(waiting, { status: 'waiting' })
    await approve(approved)
    await dispatcher.saveSource({ description: 'Other words.', approval: 'always' }, 'never', sourceId)
    expect([await statusOf(waiting), await statusOf(approved)]).toEqual(['waiting', 'approved'])
    await moveTo('/elsewhere')
    expect(await send(approved)).toMatchObject(REFUSED)
    expect([await statusOf(sent), await statusOf(waiting), await statusOf(approved)]).toEqual([
      'approved',
      'declined',
      'declined',
    ])
    expect(dispatcher.endpoint.requests.map(({ path }) => path)).toEqual(['/'])
  })

  test('stays approved when an edit of the URL comes while it is being claimed: it is sent to the approved URL', async () => {
    const id = newId()
    await approve(id)
    const { db, organizationId } = dispatcher
    const request = { id, organizationId, sourceId, requestBody: JSON.stringify(PAYLOAD), runId: null, requestId: 'r' }
    const edit = await inTransaction(db, async (client) => {
      const [claim] = await claimDeliveries({ pool: client }, [{ ...request, lease: null, resend: null }])
      expect(claim).toMatchObject({ kind: 'claimed', target: { endpointUrl: dispatcher.endpoint.url } })
      const saved = moveTo('/elsewhere')
      await waitUntil(async () => {
        const { rows } = await db.pool.query(
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        )
        return rows.length > 0
      })
      return { saved }
    })
    await edit.saved
    expect(await statusOf(id)).toBe('approved')
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
