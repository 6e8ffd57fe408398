import { deriveId, newId, workflowSearchText } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import { setProcessClock } from '@workflow-service/testkit/set-process-clock'
import { afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals'
import { useCliEnvironment } from './support/cli-environment.ts'
import { failure, waitUntilWatching, watchWf, wf } from './support/wf.ts'

const environment = useCliEnvironment()
const organizationId = deriveId('organization', 'Acme')
const ids = [newId(), newId(), newId()] as const
const sessionIds = [newId(), newId()] as const
/** Of runs that were not started by `wf start`, oldest first. */
const runIds: string[] = []

beforeAll(async () => {
  const triggers = [{ trigger_source: { slug: 'api', name: 'API' } }]
  await environment.apply({
    organization: { name: 'Acme' },
    users: [{ email: 'ada@acme.test' }],
    workflows: [
      { id: ids[0], name: 'Forward orders', description: 'Send it.\nAt once.', triggers, files: [{ name: 'a.md' }] },
      { id: ids[1], name: 'Report', is_active: false, triggers },
      { id: ids[2], name: 'Report', auto_run: { enabled: true, frequency: 'daily' } },
    ],
    sessions: sessionIds.map((id) => ({ id })),
  })
  await addRun(0, 0, 'succeeded', '2026-01-31T09:00:00Z')
  await addRun(0, 1, 'failed', '2026-01-31T10:00:00Z')
  await addRun(1, 0, 'queued', '2026-01-31T11:00:00Z')
  await addRun(0, 0, 'succeeded', '2026-01-31T12:00:00Z')
})

const run = async (...args: string[]) => await wf(environment.env, args)
const watch = (...args: string[]) => watchWf(environment.env, args)
const update = async (sql: string, ...values: unknown[]) => await environment.db.pool.query(sql, values)
const statusOf = async (id: string) => (await environment.db.prisma.start.findUniqueOrThrow({ where: { id } })).status

async function addRun(workflow: 0 | 1, session: 0 | 1, status: string, createdAt: string): Promise<void> {
  const id = newId()
  runIds.push(id)
  const isFinished = status !== 'queued'
  const created = new Date(createdAt)
  await update('UPDATE sessions SET last_start_number = last_start_number + 1 WHERE id = $1', sessionIds[session])
  await environment.db.prisma.start.create({
    data: {
      id,
      organizationId,
      workflowId: ids[workflow],
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

interface ListedRun {
  readonly id: string
  readonly status: string
}
const list = async (...args: string[]) =>
  (await run('runs', 'list', '--organization', organizationId, ...args, '--json')).json() as ListedRun[]
const indexesOf = async (...args: string[]) => (await list(...args)).map(({ id }) => runIds.indexOf(id))

const show = async (id: string) => (await run('runs', 'show', id, '--json')).json() as Record<string, string>
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
      workflow_id: ids[0],
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
    expect(await indexesOf('--workflow', ids[0])).toEqual([3, 1, 0])
    expect(await indexesOf('--session', sessionIds[1])).toEqual([1])
    expect(await indexesOf('--since', '2026-01-31T10:00:00Z', '--until', '2026-01-31T12:00:00Z')).toEqual([2, 1])
    expect(await indexesOf('--limit', '2')).toEqual([3, 2])
    expect(await indexesOf('--since', '2026-02-01')).toEqual([])
  })

  test('prints a table with the names of the workflows', async () => {
    const { stdout } = await run('runs', 'list')
    expect(stdout.split('\n')[2]).toMatch(/^2026-01-31 11:00:00 {2}queued +– +[0-9a-f-]{36} {2}Report$/)
    expect(stdout.split('\n')[3]).toMatch(/^2026-01-31 10:00:00 {2}failed +1.5 s .* Forward orders +model_refused: no$/)
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
    expect(await show(runIds[0]!)).toMatchObject({
      id: runIds[0],
      workflow_name: 'Forward orders',
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
    const stdout = `Session ${sessionIds[1]} is closed. Accepted starts that will still run: 1.\n`
    expect(await sessions('close', sessionIds[1])).toMatchObject({ stdout })
  })
})

/** Makes the run wait with these deliveries. */
async function makeWait(runId: string, count: number): Promise<string[]> {
  const deliveryIds = Array.from({ length: count }, () => newId())
  await update("UPDATE starts SET status = 'waiting' WHERE id = $1", runId)
  await update(
    `INSERT INTO approvals (delivery_id, organization_id, run_id, source_id, source_name, request_body, expires_at)
     SELECT delivery_id, $1, $2, $2, 'Order intake', '{}', now() + interval '1 day' FROM unnest($3::uuid[]) AS delivery_id`,
    organizationId,
    runId,
    deliveryIds,
  )
  return deliveryIds
}

test('wf rules draft prints rules for a run that the built-in agent refused, and refuses others', async () => {
  await addRun(1, 0, 'failed', '2026-01-31T14:00:00Z')
  const runId = runIds.at(-1)!
  const other = await run('rules', 'draft', runId)
  expect(other).toMatchObject(failure('needs no rules: it did not fail with'))
  await environment.db.prisma.start.update({ where: { id: runId }, data: { error: 'no_destination: none' } })
  const { exitStatus, stdout: content } = await run('rules', 'draft', runId)
  expect(exitStatus).toBe(0)
  expect(content).toMatch(/^# no_destination: none\n(?:# .*\n){2}# There is no/)
  expect((await run('runs', 'show', runId)).stdout).toContain(`wf rules draft ${runId}`)
  expect((await run('rules', 'draft', runId, '--json')).json()).toEqual({ run_id: runId, content })
})

const cancel = (...args: string[]) => run('runs', 'cancel', ...args)

test('wf runs cancel ends a run, or all queued runs of a workflow or session, and says what to name', async () => {
  await addRun(1, 0, 'queued', '2026-01-31T15:00:00Z')
  await addRun(1, 0, 'queued', '2026-01-31T16:00:00Z')
  const [one, other] = runIds.slice(-2)
  expect(await cancel(one!)).toMatchObject({ exitStatus: 0, stdout: `Run ${one} is cancelled.\n` })
  expect(await cancel(one!)).toMatchObject(failure(`Error: Run ${one} has ended already.\n`))
  const { session_id: session = '' } = await show(other!)
  const queue = ['--organization', organizationId, '--session', session]
  expect((await cancel(...queue, '--json')).json()).toMatchObject({ is_more: false })
  expect(await show(other!)).toMatchObject({ status: 'cancelled' })
  await addRun(1, 0, 'queued', '2026-01-31T17:00:00Z')
  const all = ['--organization', organizationId, '--workflow', ids[1], '--json']
  expect((await cancel(...all)).json()).toMatchObject({ cancelled: expect.any(Number), is_more: false })
  expect(await show(runIds.at(-1)!)).toMatchObject({ status: 'cancelled' })
  await addRun(1, 0, 'queued', '2026-01-31T18:00:00Z')
  expect(await cancel(...all.slice(0, -1))).toMatchObject({ stdout: '1 queued run is cancelled.\n' })
  expect(await cancel(...all.slice(0, -1))).toMatchObject({ stdout: '0 queued runs are cancelled.\n' })
  expect(await cancel()).toMatchObject(failure('--workflow or --session', 2))
  expect(await cancel(one!, ...queue)).toMatchObject({ exitStatus: 2 })
})

test('--session finds sessions of the organization only, by their beginning or by the whole id', async () => {
  const { prisma } = environment.db
  const own = newId()
  await sessions('open', own)
  const other = { id: `${own.slice(0, -1)}${own.endsWith('0') ? 1 : 0}`, organizationId: newId() }
  await prisma.organization.create({ data: { id: other.organizationId, name: 'Other' } })
  await prisma.session.create({ data: other })
  try {
    const prefix = own.slice(0, -1)
    for (const words of [
      ['runs', 'list'],
      ['runs', 'cancel'],
      ['start', ids[0], 'x'],
    ]) {
      expect(await run(...words, '--organization', organizationId, '--session', prefix)).toMatchObject({
        exitStatus: 0,
        stderr: '',
      })
      const message = `Error: No session has an id that begins with ${other.id}. List them with wf sessions list.\n`
      expect(await run(...words, '--organization', organizationId, '--session', other.id)).toMatchObject(
        failure(message),
      )
    }
  } finally {
    await prisma.organization.delete({ where: { id: other.organizationId } })
  }
})

test('wf runs approve and wf runs decline decide on all waiting payloads, or on one; a run that does not wait is refused', async () => {
  await addRun(1, 0, 'queued', '2026-01-31T13:00:00Z')
  const runId = runIds.at(-1)!
  const [first, ...others] = await makeWait(runId, 3)
  expect(await list('--status', 'waiting')).toMatchObject([{ id: runId, status: 'waiting' }])
  const one = await run('runs', 'decline', runId, '--delivery', first!, '--reason', '📦'.repeat(1_000))
  expect(one).toMatchObject({ exitStatus: 0, stdout: `Delivery ${first} is declined.\n` })
  const rest = await run('runs', 'approve', runId, '--json')
  expect(rest.json()).toEqual({ run_id: runId, decision: 'approved', delivery_ids: expect.any(Array) })
  expect((rest.json() as { delivery_ids: string[] }).delivery_ids.toSorted()).toEqual(others.toSorted())
  expect(await run('runs', 'approve', runId)).toMatchObject(
    failure(`Error: Run ${runId} does not wait for an approval: it was decided, it expired, or the run has ended.\n`),
  )
  expect(await run('runs', 'approve', runIds[0]!)).toMatchObject({ exitStatus: 1 })
  const actors = await environment.db.prisma.auditEvent.findMany({ where: { targetId: { in: [first!, ...others] } } })
  expect(actors.map(({ actorKind }) => actorKind)).toEqual(['operator', 'operator', 'operator'])
})

describe('wf workflows', () => {
  test('list shows whether each workflow can be started, and finds by a text', async () => {
    const { stdout } = await run('workflows', 'list')
    expect(stdout).toMatch(/^NAME +ID +CAN START\nForward orders +\S+ +yes\n/)
    expect(stdout).toMatch(new RegExp(`\nReport +${ids[1]}  no: inactive\n`))
    const found = await run('workflows', 'list', '--search', 'AT ONCE', '--json')
    expect(found.json()).toMatchObject([{ id: ids[0], name: 'Forward orders', is_active: true }])
    expect((await run('workflows', 'list', '--limit', '2', '--json')).json()).toHaveLength(2)
  })

  test('show says what a workflow does and why it cannot be started, and prints the document of the API as JSON', async () => {
    const { stdout } = await run('workflows', 'show', 'forward ORDERS')
    expect(stdout).toMatch(/^Forward orders\n {2}id +\S+\n/)
    expect(stdout).toMatch(/\n {2}can start +yes\n[^]* UTC\n\n {2}Send it\.\n {2}At once\.\n$/)
    const inactive = await run('workflows', 'show', ids[1])
    expect(inactive.stdout).toContain('can start     no: inactive')
    await update('UPDATE organizations SET is_suspended = true')
    const [suspended, all] = [await run('workflows', 'show', ids[0]), await run('workflows', 'list')]
    await update('UPDATE organizations SET is_suspended = false')
    expect(suspended.stdout).toContain('can start     no: the organization is suspended')
    expect(all.stdout.match(/ {2}no: the organization is suspended\n/g)).toHaveLength(3)
    const { json } = await run('workflows', 'show', ids[0], '--json')
    expect(json()).toMatchObject({
      id: ids[0],
      users: [{ email: 'ada@acme.test' }],
      files: [{ name: 'a.md', path: [] }],
    })
  })
})

describe('a workflow named by', () => {
  test('its name in another case, where ß is SS, is found', async () => {
    const rename = 'UPDATE workflows SET name = $2, search_text = $3 WHERE id = $1'
    await update(rename, ids[0], 'Straße', workflowSearchText('Straße', ''))
    const { json } = await run('workflows', 'show', 'STRASSE', '--json')
    await update(rename, ids[0], 'Forward orders', workflowSearchText('Forward orders', ''))
    expect(json()).toMatchObject({ id: ids[0], name: 'Straße' })
  })

  test('an ambiguous name lists the candidates', async () => {
    const message = `Error: Several workflows are named report. Choose one by its id:\n  ${ids[1]}\n  ${ids[2]}\n`
    expect(await run('workflows', 'show', 'report')).toMatchObject(failure(message))
  })

  test('an unknown name is an error that says how to list them', async () => {
    const workflow = await run('export', '--workflow', 'Foward orders')
    expect(workflow.stderr).toBe('Error: There is no workflow Foward orders. List them with wf workflows list.\n')
    const dashes = await run('workflows', 'show', '--', '--json')
    expect(dashes.stderr).toBe('Error: There is no workflow --json. List them with wf workflows list.\n')
    const organization = await run('workflows', 'list', '--organization', 'Acm')
    expect(organization.stderr).toBe('Error: There is no organization Acm. List them with wf organizations list.\n')
  })
})

describe('wf start', () => {
  test('records a start as the operator, with its audit event, in a new or a given session', async () => {
    const first = (await run('start', 'forward orders', '  order_id: A-1 ', '--json')).json() as Record<string, string>
    expect(first).toEqual({ id: expect.any(String), workflow_id: ids[0], session_id: expect.any(String) })
    const stored = await environment.db.prisma.start.findUniqueOrThrow({ where: { id: first['id']! } })
    expect(stored).toMatchObject({ context: 'order_id: A-1', origin: 'app', userId: null, status: 'queued' })
    const event = await environment.db.prisma.auditEvent.findFirstOrThrow({ where: { action: 'workflow.started' } })
    expect(event).toMatchObject({ actorKind: 'operator', targetId: ids[0] })
    const prefix = first['session_id']!.slice(0, 18)
    const second = await run('start', ids[0], 'again', '--session', `${prefix}…`, '--json')
    expect(second.json()).toMatchObject({ session_id: first['session_id'] })
    expect(await show(first['id']!.slice(0, 18))).toMatchObject({ id: first['id'] })
  })

  test('reads the text from standard input', async () => {
    const { json } = await wf(environment.env, ['start', 'Forward orders', '-', '--json'], { input: '{"a": 1}\n' })
    const { id } = json() as { id: string }
    expect(await show(id)).toMatchObject({ context: '{"a": 1}', origin: 'app' })
  })

  test('refuses what the public API refuses, and says what to do', async () => {
    const inactive = await run('start', ids[1], 'x')
    expect(inactive).toMatchObject(failure('Report was not started. The workflow is inactive.'))
    expect(await run('start', ids[0], ' ')).toMatchObject({ exitStatus: 2 })
    expect(await run('start', ids[0], 'x'.repeat(10_001))).toMatchObject({ exitStatus: 2 })
    expect((await run('start', ids[0], 'x', '--session', newId())).stderr).toContain(
      'No session has an id that begins with',
    )
  })

  test('--follow shows each event until the end, and exits with 1 if the run fails', async () => {
    const { output, ended } = watch('start', 'Forward orders', 'x', '--follow')
    await waitUntil(() => output().includes('start accepted'))
    const [, id = ''] = /^Run (\S+) queued\n/.exec(output()) ?? []
    await update("UPDATE starts SET status = 'running', started_at = now() WHERE id = $1", id)
    await waitUntil(() => output().includes('a runner began the run'))
    await update("UPDATE starts SET status = 'failed', error = 'no', finished_at = now() WHERE id = $1", id)
    const { exitStatus, stdout } = await ended
    expect(exitStatus).toBe(1)
    expect(stdout.match(/start accepted|a runner began the run|  failed\n/g)).toHaveLength(3)
  })

  test('--follow names the run that it has started also if that cannot be read', async () => {
    await environment.db.pool.query('ALTER TABLE run_steps RENAME TO missing_steps')
    const failed = await run('start', 'Forward orders', 'x', '--follow')
    await environment.db.pool.query('ALTER TABLE missing_steps RENAME TO run_steps')
    const { id } = await environment.db.prisma.start.findFirstOrThrow({ orderBy: { id: 'desc' } })
    const accepted = `^Run ${id} of Forward orders is accepted, in session [^]*\nError: .*the tables are missing`
    expect(failed).toMatchObject(failure(new RegExp(accepted)))
  })

  test('--follow ends on Ctrl-C, and the run goes on', async () => {
    const { output, interrupt } = watch('start', 'Forward orders', 'x', '--follow', '--json')
    await waitUntil(() => output() !== '')
    expect(await interrupt()).toMatchObject({ exitStatus: 130 })
    const { id, status } = JSON.parse(output()) as { id: string; status: string }
    expect([status, await statusOf(id)]).toEqual(['queued', 'queued'])
  })
})

test('--follow ends when the run is deleted', async () => {
  const { output, ended } = watch('start', 'Forward orders', 'x', '--follow', '--json')
  await waitUntil(() => output() !== '')
  const { id } = JSON.parse(output()) as { id: string }
  await update('DELETE FROM starts WHERE id = $1', id)
  expect(await ended).toMatchObject(failure(`Run ${id} was deleted.`))
})

describe('wf runs list --follow', () => {
  afterEach(() => void jest.useRealTimers())

  test('prints the first run of a session also where the clock is ahead of the database', async () => {
    const { id: session } = (await run('sessions', 'open', '--json')).json() as { id: string }
    setProcessClock(3_600_000)
    const { output, interrupt } = watch('runs', 'list', '--follow', '--json', '--session', session)
    await waitUntilWatching(environment.db, 'starts')
    const started = await run('start', 'Forward orders', 'x', '--session', session, '--json')
    const { id } = started.json() as { id: string }
    await waitUntil(() => output().includes(id))
    expect(await interrupt()).toMatchObject({ exitStatus: 130 })
    await update("UPDATE starts SET status = 'failed', error = 'later', finished_at = now() WHERE id = $1", id)
  })

  test('prints each run when its status changes', async () => {
    const args = 'runs list --follow --limit 1 --status failed --json --workflow'.split(' ')
    const { output, interrupt } = watch(...args, 'forward orders')
    await waitUntil(() => output() !== '')
    const { id } = (await run('start', 'Forward orders', 'x', '--json')).json() as { id: string }
    await update("UPDATE starts SET status = 'failed', error = 'later', finished_at = now() WHERE id = $1", id)
    await waitUntil(() => output().includes(id))
    expect(await interrupt()).toMatchObject({ exitStatus: 130 })
    const runs = (output().match(/.+/g) ?? []).map((line) => JSON.parse(line) as ListedRun)
    expect(runs.map(({ status }) => status)).toEqual(['failed', 'failed'])
    expect(runs.at(-1)?.id).toBe(id)
  })
})

describe('wf sessions list', () => {
  test('shows the newest first', async () => {
    const { id } = (await run('sessions', 'open', '--json')).json() as { id: string }
    await run('sessions', 'close', id.slice(0, 18))
    const [newest] = (await run('sessions', 'list', '--json')).json() as object[]
    expect(newest).toMatchObject({ id, organization_id: organizationId, is_open: false, starts: 0 })
    const { stdout } = await run('sessions', 'list', '--limit', '1')
    expect(stdout).toMatch(new RegExp(`^SESSION .*\n${id}  closed  0 +0 +\\S+ \\S+  \\S+ \\S+\n$`))
  })

  test('an id prefix that several sessions have lists them', async () => {
    const prefix = newId().slice(0, 8)
    const both = [`${prefix}-0000-7000-8000-000000000001`, `${prefix}-0000-7000-8000-000000000002`]
    for (const id of both) await run('sessions', 'open', id)
    const { exitStatus, stderr } = await run('sessions', 'show', `${prefix}-0000`)
    expect(exitStatus).toBe(1)
    for (const id of both) expect(stderr).toContain(`  ${id}\n`)
    expect(await run('sessions', 'show', 'ffffffff')).toMatchObject({ exitStatus: 1 })
  })
})

const offline = async (...words: string[]) => (await wf({}, ['complete', '--', ...words])).stdout

describe('wf completion', () => {
  test('completes commands, options and choices', async () => {
    expect(await offline('wor')).toBe('workflows\tList and show workflows. wf apply and the application change them.\n')
    expect(await offline('runs', 'list', '--sta')).toMatch(/^--status\t/)
    expect(await offline('runs', 'list', '--status', 'su')).toBe('succeeded\t\n')
    expect(await offline('completion', '')).toBe('bash\t\nzsh\t\nfish\t\n')
    expect(await offline('start', '')).toBe('')
  })

  test.each(['bash', 'zsh', 'fish'])('prints a script for %s that calls wf by its paths', async (shell) => {
    const { exitStatus, stdout } = await wf({}, ['completion', shell])
    expect(exitStatus).toBe(0)
    expect(stdout).toMatch(/'\/.*' '\/.*\/packages\/cli\/src\/main\.ts' complete -- /)
  })
})

// Last: the tests above count the workflows.
test('escape sequences and marks of the writing direction in names do not reach the terminal, as text or as JSON', async () => {
  const name = 'Evil \u001b]0;PWNED\u0007\u001b[2J\u009b2J\u202egnp'
  const id = newId()
  await environment.apply({ organization: { name: 'Acme' }, workflows: [{ id, name }] })
  const answers = [
    await run('workflows', 'show', name),
    await run('workflows', 'show', id),
    await run('workflows', 'show', id, '--json'),
    await run('workflows', 'show', `${name}?`, '--json'),
    await run('export'),
    await run('start', id, 'text'),
  ]
  const written = answers.map(({ stdout, stderr }) => stdout + stderr)
  expect(written.filter((text) => !text.includes('PWNED'))).toHaveLength(0)
  expect(written.join('').replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u)
  expect(answers[2]?.json()).toMatchObject({ name })
})
