import { deriveId, newId } from '@workflow-service/database'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { useCliEnvironment } from './support/cli-environment.ts'
import { failure, wf } from './support/wf.ts'

interface RunJson {
  id: string
  status: string
}

const environment = useCliEnvironment()
const run = async (...args: string[]) => await wf(environment.env, args)
let organizationId: string
const workflowIds = [newId(), newId()] as const
const sessionIds = [newId(), newId()] as const

beforeAll(async () => {
  await environment.apply({
    organization: { name: 'Acme' },
    workflows: [
      { id: workflowIds[0], name: 'Forward' },
      { id: workflowIds[1], name: 'Report' },
    ],
    sessions: sessionIds.map((id) => ({ id })),
  })
  organizationId = deriveId('organization', 'Acme')
  await addRun(0, 0, 'succeeded', '2026-01-31T09:00:00Z')
  await addRun(0, 1, 'failed', '2026-01-31T10:00:00Z')
  await addRun(1, 0, 'queued', '2026-01-31T11:00:00Z')
  await addRun(0, 0, 'succeeded', '2026-01-31T12:00:00Z')
}, 60_000)

const runIds: string[] = []

async function addRun(workflow: 0 | 1, session: 0 | 1, status: string, createdAt: string): Promise<void> {
  const id = newId()
  runIds.push(id)
  const isFinished = status !== 'queued'
  const created = new Date(createdAt)
  await environment.db.pool.query('UPDATE sessions SET last_start_number = last_start_number + 1 WHERE id = $1', [
    sessionIds[session],
  ])
  await environment.db.prisma.start.create({
    data: {
      id,
      organizationId,
      workflowId: workflowIds[workflow],
      sessionId: sessionIds[session],
      number: BigInt(runIds.length),
      origin: 'api',
      context: 'order_id: A-1',
      requestId: 'request-1',
      status,
      attempts: isFinished ? 1 : 0,
      error: status === 'failed' ? 'model_refused: no' : null,
      createdAt: created,
      startedAt: isFinished ? created : null,
      finishedAt: isFinished ? new Date(created.getTime() + 1_500) : null,
    },
  })
  await environment.db.prisma.runStep.create({
    data: { runId: id, position: 0, kind: 'message', data: { agent: 'builtin', text: 'hello' }, epoch: 1n },
  })
}

const list = async (...args: string[]) =>
  (await run('runs', 'list', '--organization', organizationId, ...args, '--json')).json() as RunJson[]
const indexesOf = async (...args: string[]) => (await list(...args)).map(({ id }) => runIds.indexOf(id))

const sessions = async (...args: string[]) => await run('sessions', ...args)

describe('wf runs list', () => {
  test('hints at what the built-in agent cannot follow in the workflows, below the table only', async () => {
    const { stdout } = await run('runs', 'list', '--organization', organizationId)
    expect(stdout).toMatch(/\n\nHint: .+: The organization has no webhook source, so nothing is sent\.\n/)
  })

  test('prints exactly the fields that programs rely on, newest first', async () => {
    const [failed] = await list('--status', 'failed')
    expect(failed).toEqual({
      id: runIds[1],
      workflow_id: workflowIds[0],
      session_id: sessionIds[1],
      status: 'failed',
      attempts: 1,
      error: 'model_refused: no',
      created_at: '2026-01-31T10:00:00.000Z',
      started_at: '2026-01-31T10:00:00.000Z',
      finished_at: '2026-01-31T10:00:01.500Z',
    })
    expect(await indexesOf()).toEqual([3, 2, 1, 0])
  })

  test('filters by status, workflow, session and time, and stops at the limit', async () => {
    expect(await indexesOf('--status', 'queued')).toEqual([2])
    expect(await indexesOf('--workflow', workflowIds[0])).toEqual([3, 1, 0])
    expect(await indexesOf('--session', sessionIds[1])).toEqual([1])
    expect(await indexesOf('--since', '2026-01-31T10:00:00Z', '--until', '2026-01-31T12:00:00Z')).toEqual([2, 1])
    expect(await indexesOf('--limit', '2')).toEqual([3, 2])
    expect(await indexesOf('--since', '2026-02-01')).toEqual([])
  })

  test('prints a table with the names of the workflows', async () => {
    const { stdout } = await run('runs', 'list')
    expect(stdout.split('\n')[2]).toMatch(/^2026-01-31 11:00:00 {2}queued +– +[0-9a-f-]{36} {2}Report$/)
    expect(stdout.split('\n')[3]).toMatch(/^2026-01-31 10:00:00 {2}failed +1.5 s .* Forward +model_refused: no$/)
  })

  test('--follow prints headings, and the oldest first', async () => {
    const interrupted = AbortSignal.abort()
    const { stdout } = await wf(environment.env, ['runs', 'list', '--follow', '--limit', '2'], { interrupted })
    const [headings, oldest] = stdout.split('\n')
    expect(headings).toMatch(/^ACCEPTED \(UTC\) +STATUS +TOOK +RUN +WORKFLOW +ERROR$/)
    expect(oldest?.indexOf('Report')).toBe(headings?.indexOf('WORKFLOW'))
  })
})

describe('wf runs show', () => {
  test('prints the journal as JSON', async () => {
    const headers = { 'retry-after': '7' }
    await environment.db.prisma.delivery.create({
      data: {
        id: newId(),
        organizationId,
        sourceId: newId(),
        runId: runIds[0]!,
        kind: 'payload',
        outcome: 'rejected',
        status: 429,
        requestBody: {},
        answerHeaders: headers,
      },
    })
    const { json } = await run('runs', 'show', runIds[0] ?? '', '--json')
    expect(json()).toMatchObject({
      id: runIds[0],
      workflow_name: 'Forward',
      steps: [{ position: 0, kind: 'message', data: { text: 'hello' }, created_at: expect.any(String) }],
      deliveries: [{ status: 429, answer_headers: headers }],
    })
  })

  test.each([
    [['runs', 'show'], (id: string) => `There is no run ${id}. List the runs with wf runs list.`],
    [['sessions', 'show'], (id: string) => `There is no session ${id}.`],
    [['sessions', 'close'], (id: string) => `There is no session ${id}.`],
  ])('an unknown id is an error of %j', async (command, message) => {
    const id = newId()
    expect(await run(...command, id)).toMatchObject(failure(`Error: ${message(id)}\n`))
  })
})

describe('wf sessions', () => {
  test('open creates a session, also with a given id, close closes it, and open reopens it', async () => {
    expect((await sessions('open', '--json')).json()).toMatchObject({ id: expect.any(String), is_open: true })
    const id = newId()
    expect((await sessions('open', id.toUpperCase(), '--json')).json()).toMatchObject({ id, is_open: true })
    const closed = await sessions('close', id, '--json')
    expect(closed.json()).toMatchObject({ id, is_open: false, closed_at: expect.any(String) })
    expect((await sessions('open', id, '--json')).json()).toMatchObject({ id, is_open: true, closed_at: null })
  })

  test('show prints the state, the counts and the runs', async () => {
    const { stdout } = await sessions('show', sessionIds[0])
    expect(stdout).toMatch(/ is open since /)
    expect(stdout).toMatch(/starts +3 accepted, 0 finished/)
    expect(stdout).toContain('Report')
    expect((await sessions('show', sessionIds[0], '--json')).json()).toMatchObject({
      starts: 3,
      runs: [{ id: runIds[3] }, { id: runIds[2] }, { id: runIds[0] }],
    })
  })

  test('close says how many accepted starts will still run', async () => {
    expect((await sessions('close', sessionIds[1])).stdout).toBe(
      `Session ${sessionIds[1]} is closed. Accepted starts that will still run: 1.\n`,
    )
  })
})

/** Makes the run wait with these deliveries. */
async function makeWait(runId: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId())
  await environment.db.pool.query("UPDATE starts SET status = 'waiting' WHERE id = $1", [runId])
  await environment.db.pool.query(
    `INSERT INTO approvals (delivery_id, organization_id, run_id, source_id, source_name, request_body, expires_at)
     SELECT delivery_id, $1, $2, $2, 'Order intake', '{}', now() + interval '1 day' FROM unnest($3::uuid[]) AS delivery_id`,
    [organizationId, runId, ids],
  )
  return ids
}

describe('wf rules draft', () => {
  test('prints rules for a run that the built-in agent refused, and refuses others', async () => {
    await addRun(1, 0, 'failed', '2026-01-31T14:00:00Z')
    const runId = runIds.at(-1)!
    const other = await run('rules', 'draft', runId)
    expect(other).toMatchObject(failure('needs no rules: it did not fail with'))
    await environment.db.prisma.start.update({ where: { id: runId }, data: { error: 'no_destination: none' } })
    const drafted = await run('rules', 'draft', runId)
    expect(drafted).toMatchObject({
      exitStatus: 0,
      stdout: expect.stringMatching(/^# no_destination: none\n(?:# .*\n){2}# There is no/),
    })
    expect((await run('runs', 'show', runId)).stdout).toContain(`wf rules draft ${runId}`)
    expect((await run('rules', 'draft', runId, '--json')).json()).toEqual({
      run_id: runId,
      content: drafted.stdout,
    })
  })
})

const cancel = (...args: string[]) => run('runs', 'cancel', ...args)

describe('wf runs cancel', () => {
  test('ends a run, or all queued runs of a workflow or session, and says what to name', async () => {
    await addRun(1, 0, 'queued', '2026-01-31T15:00:00Z')
    await addRun(1, 0, 'queued', '2026-01-31T16:00:00Z')
    const [one, other] = runIds.slice(-2)
    expect(await cancel(one!)).toMatchObject({ exitStatus: 0, stdout: `Run ${one} is cancelled.\n` })
    expect(await cancel(one!)).toMatchObject(failure(`Error: Run ${one} has ended already.\n`))
    const { session_id: session } = (await run('runs', 'show', other!, '--json')).json() as {
      session_id: string
    }
    const queue = ['--organization', organizationId, '--session', session]
    expect((await cancel(...queue, '--json')).json()).toMatchObject({ is_more: false })
    const ended = await run('runs', 'show', other!, '--json')
    expect(ended.json()).toMatchObject({ status: 'cancelled' })
    await addRun(1, 0, 'queued', '2026-01-31T17:00:00Z')
    const all = ['--organization', organizationId, '--workflow', workflowIds[1], '--json']
    expect((await cancel(...all)).json()).toMatchObject({ cancelled: expect.any(Number), is_more: false })
    const last = await run('runs', 'show', runIds.at(-1)!, '--json')
    expect(last.json()).toMatchObject({ status: 'cancelled' })
    expect(await cancel()).toMatchObject(failure('--workflow or --session', 2))
    expect(await cancel(one!, ...queue)).toMatchObject({ exitStatus: 2 })
  })
})

describe('wf runs approve and wf runs decline', () => {
  test('decide on all waiting payloads, or on one; a run that does not wait is refused', async () => {
    await addRun(1, 0, 'queued', '2026-01-31T13:00:00Z')
    const runId = runIds.at(-1)!
    const [first, ...others] = await makeWait(runId, 3)
    expect(await list('--status', 'waiting')).toMatchObject([{ id: runId, status: 'waiting' }])
    const one = await run('runs', 'decline', runId, '--delivery', first!, '--reason', 'Wrong total.')
    expect(one).toMatchObject({ exitStatus: 0, stdout: `Delivery ${first} is declined.\n` })
    const rest = await run('runs', 'approve', runId, '--json')
    expect(rest.json()).toEqual({ run_id: runId, decision: 'approved', delivery_ids: expect.any(Array) })
    expect((rest.json() as { delivery_ids: string[] }).delivery_ids.toSorted()).toEqual(others.toSorted())
    expect(await run('runs', 'approve', runId)).toMatchObject(
      failure(`Error: Run ${runId} does not wait for an approval: it was decided, or it expired.\n`),
    )
    expect(await run('runs', 'approve', runIds[0]!)).toMatchObject({ exitStatus: 1 })
    const actors = await environment.db.prisma.auditEvent.findMany({ where: { targetId: { in: [first!, ...others] } } })
    expect(actors.map(({ actorKind }) => actorKind)).toEqual(['operator', 'operator', 'operator'])
  })
})
