import { deriveId, newId, workflowSearchText } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { useCliEnvironment } from './support/cli-environment.ts'
import { failure, watchWf, wf } from './support/wf.ts'

const environment = useCliEnvironment()
const organizationId = deriveId('organization', 'Acme')
const ids = [newId(), newId(), newId()] as const

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
  })
}, 60_000)

const run = async (...args: string[]) => await wf(environment.env, args)
const watch = (...args: string[]) => watchWf(environment.env, args)
const update = async (sql: string, ...values: unknown[]) => await environment.db.pool.query(sql, values)
const statusOf = async (id: string) => (await environment.db.prisma.start.findUniqueOrThrow({ where: { id } })).status

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
    const [suspended, list] = [await run('workflows', 'show', ids[0]), await run('workflows', 'list')]
    await update('UPDATE organizations SET is_suspended = false')
    expect(suspended.stdout).toContain('can start     no: the organization is suspended')
    expect(list.stdout.match(/ {2}no: the organization is suspended\n/g)).toHaveLength(3)
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
    expect(await run('workflows', 'show', 'report')).toMatchObject(
      failure(`Error: Several workflows are named report. Choose one by its id:\n  ${ids[1]}\n  ${ids[2]}\n`),
    )
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
    const shown = await run('runs', 'show', first['id']!.slice(0, 18), '--json')
    expect(shown.json()).toMatchObject({ id: first['id'] })
  })

  test('reads the text from standard input', async () => {
    const { json } = await wf(environment.env, ['start', 'Forward orders', '-', '--json'], { input: '{"a": 1}\n' })
    const { id } = json() as { id: string }
    expect((await run('runs', 'show', id, '--json')).json()).toMatchObject({ context: '{"a": 1}', origin: 'app' })
  })

  test('refuses what the public API refuses, and says what to do', async () => {
    const inactive = await run('start', ids[1], 'x')
    expect(inactive).toMatchObject(failure('Report was not started. The workflow is inactive.'))
    expect(await run('start', ids[0], ' ')).toMatchObject({ exitStatus: 2 })
    expect(await run('start', ids[0], 'x'.repeat(10_001))).toMatchObject({ exitStatus: 2 })
    expect((await run('start', ids[0], 'x', '--session', newId())).stderr).toContain('Acme has no such session.')
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
  test('prints each run when its status changes', async () => {
    const args = 'runs list --follow --limit 1 --status failed --json --workflow'.split(' ')
    const { output, interrupt } = watch(...args, 'forward orders')
    await waitUntil(() => output() !== '')
    const { id } = (await run('start', 'Forward orders', 'x', '--json')).json() as { id: string }
    await update("UPDATE starts SET status = 'failed', error = 'later', finished_at = now() WHERE id = $1", id)
    await waitUntil(() => output().includes(id))
    expect(await interrupt()).toMatchObject({ exitStatus: 130 })
    const runs = output()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string; status: string })
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
