import { chmod, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { newDeliveryId, newId } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import { useTestFolder } from '@workflow-service/testkit/use-test-folder'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { useTestGateway } from '../../../services/gateway/test/support/test-gateway.ts'
import { failure, watchWf, wf } from './support/wf.ts'

const gateway = useTestGateway()
const folder = useTestFolder()
let workflowId: string
let ended: { id: string; sessionId: string }
let deliveryId: string

beforeAll(async () => {
  ;({ id: workflowId } = await gateway.createWorkflow({ name: 'Forward orders' }))
  await gateway.createWorkflow({ name: 'Off', is_active: false })
  ended = await gateway.createEndedRun(workflowId)
  const organizationId = gateway.organization.id
  const source = { name: 'Order intake', nameKey: 'order intake', description: '', endpointUrl: 'https://e.test' }
  const { id: sourceId } = await gateway.db.prisma.webhookSource.create({
    data: { id: newId(), organizationId, exampleRequestBody: {}, ...source },
  })
  deliveryId = newDeliveryId()
  const sent = {
    kind: 'payload',
    outcome: 'accepted',
    status: 201,
    requestBody: {},
    runId: ended.id,
    organizationId,
    finishedAt: new Date(),
  }
  await gateway.db.prisma.delivery.create({ data: { id: deliveryId, sourceId, ...sent } })
})

const keyEnv = () => ({ WF_API_KEY: gateway.organization.key, WF_API_URL: gateway.url, XDG_CONFIG_HOME: folder })
const run = async (...args: string[]) => await wf(keyEnv(), args)

const loginEnv = () => ({ XDG_CONFIG_HOME: folder })
const keyFile = () => join(folder, 'workflow-service', 'credentials.json')

describe('wf login', () => {
  test('saves a key that the service accepts in a file for its owner only, and logout deletes it', async () => {
    const input = `${gateway.organization.key}\n`
    expect(await wf(loginEnv(), ['login', gateway.url], { input })).toMatchObject({
      exitStatus: 0,
      stdout: `Signed in to Acme at ${gateway.url}. The key is saved in ${keyFile()}.\n`,
    })
    expect((await stat(keyFile())).mode & 0o777).toBe(0o600)
    expect((await wf(loginEnv(), ['whoami'])).stdout).toBe(`Acme  ${gateway.organization.id}\n${gateway.url}\n`)
    // No other service gets it.
    const other = await wf({ ...loginEnv(), WF_API_URL: 'http://127.0.0.1:9' }, ['whoami'])
    expect(other).toMatchObject(failure(`The saved key is one of ${gateway.url}, and WF_API_URL is another address.`))
    // The same address, in other words.
    for (const same of [`${gateway.url}/`, gateway.url.replace('http', 'HTTP')])
      expect(await wf({ ...loginEnv(), WF_API_URL: same }, ['whoami'])).toMatchObject({ exitStatus: 0 })
    await chmod(keyFile(), 0o644)
    expect((await wf(loginEnv(), ['whoami'])).stderr).toContain('Others can read')
    await chmod(keyFile(), 0o600)
    expect(await wf(loginEnv(), ['logout'])).toMatchObject({ exitStatus: 0 })
    expect((await wf(loginEnv(), ['whoami'])).stderr).toContain('wf login URL')
  })

  test('asks for the key without showing it, and saves none that is refused', async () => {
    const asked: unknown[] = []
    const ask = async (...question: unknown[]) => (asked.push(question), 'wfk_wrong')
    expect(await wf(loginEnv(), ['login', gateway.url], { ask })).toMatchObject(failure('401 unauthorized'))
    expect(asked).toEqual([['API key (wfk_…): ', { isSecret: true }]])
    await expect(readFile(keyFile())).rejects.toThrow('ENOENT')
    expect((await wf(loginEnv(), ['login'])).exitStatus).toBe(2)
    expect((await wf(loginEnv(), ['login', 'http://127.0.0.1:1'], { input: 'k' })).stderr).toContain('does not answer')
  })

  test('says what to do where the key cannot be saved', async () => {
    const input = gateway.organization.key
    const env = { XDG_CONFIG_HOME: '/dev/null' }
    const message =
      "cannot be saved (ENOTDIR: not a directory, mkdir '/dev/null/workflow-service'). Set XDG_CONFIG_HOME"
    expect(await wf(env, ['login', gateway.url], { input })).toMatchObject(failure(message))
  })

  test.each<[() => string, string]>([
    [() => gateway.url.replace('http://', ''), 'The address of the service must be one such as'],
    [() => `${gateway.url}/v1`, 'Is this the address of the public API?'],
  ])('says what is wrong with an address', async (address, message) => {
    const input = gateway.organization.key
    expect(await wf(loginEnv(), ['login', address()], { input })).toMatchObject(failure(message))
  })
})

describe('with an API key alone, wf', () => {
  test('lists and shows the workflows of the organization', async () => {
    expect((await run('workflows', 'list')).stdout).toMatch(/Forward orders +\S+ +yes\nOff +\S+ +no: inactive\n/)
    expect((await run('workflows', 'show', 'forward ORDERS')).stdout).toMatch(/^Forward orders\n {2}id +\S+\n/)
    expect((await run('workflows', 'show', 'Forward order')).stderr).toContain('There is no workflow Forward order.')
    // Longer than what can be searched.
    const name = `Forward ${'📦'.repeat(292)}`
    await gateway.createWorkflow({ name })
    expect((await run('workflows', 'show', name.toUpperCase())).stdout).toContain(name)
  })

  test('shows a run, its session and what was sent, as text and as the API has it', async () => {
    const shown = await run('runs', 'show', ended.id)
    expect(shown.stdout).toMatch(new RegExp(`^Run ${ended.id} succeeded after .*\n[^]*Order intake +accepted +201`))
    expect((await run('runs', 'show', ended.id, '--json')).json()).toMatchObject({ deliveries: [{ id: deliveryId }] })
    expect((await run('runs', 'list', '--session', ended.sessionId)).stdout).toContain(ended.id)
    expect((await run('sessions', 'show', ended.sessionId)).stdout).toContain('is open since')
    for (const of of [
      ['--run', ended.id],
      ['--session', ended.sessionId],
    ]) {
      expect((await run('logs', ...of, '--json')).json()).toMatchObject([{ id: deliveryId, run_id: ended.id }])
    }
  })

  test('does not say that nothing was sent of a run whose deliveries are deleted by now', async () => {
    const { delivery } = gateway.db.prisma
    await delivery.update({ where: { id: deliveryId }, data: { runId: null } })
    expect((await run('runs', 'show', ended.id)).stdout).toContain('\nThe log has no delivery of it.\n')
    expect((await run('logs', '--run', ended.id)).stdout).toBe('The log has no delivery.\n')
    await delivery.update({ where: { id: deliveryId }, data: { runId: ended.id } })
  })

  test('starts a workflow and follows its run, with an exit status that says how it ended', async () => {
    const { output, ended: following } = watchWf(
      keyEnv(),
      ['start', 'Forward orders', '-', '--follow'],
      'order_id: A-1',
    )
    await waitUntil(() => output().includes('queued'))
    const [, id = ''] = /run (\S+) in session/.exec(output()) ?? []
    const error = 'delivery_rejected: Order intake answered with 500.'
    await gateway.db.prisma.start.update({ where: { id }, data: { status: 'failed', error, finishedAt: new Date() } })
    expect(await following).toMatchObject({ exitStatus: 1 })
    expect(output()).toMatch(/\nRun \S+ failed after .*\n +error +delivery_rejected: Order intake answered with 500\./)
    expect(await run('runs', 'show', ended.id, '--follow')).toMatchObject({ exitStatus: 0 })
  })

  test('names the run that it has started also if that cannot be followed', async () => {
    const { pool } = gateway.db
    await pool.query('ALTER TABLE deliveries RENAME TO missing_deliveries')
    const failed = await run('start', 'Forward orders', 'x', '--follow')
    await pool.query('ALTER TABLE missing_deliveries RENAME TO deliveries')
    const { id } = await gateway.db.prisma.start.findFirstOrThrow({ orderBy: { id: 'desc' } })
    const accepted = new RegExp(`^Run ${id} of Forward orders is accepted, in session [^]*\nError: 500 internal_error`)
    expect(failed).toMatchObject(failure(accepted))
  })

  test('ends with 124 when --timeout is over, and with 130 on Ctrl-C', async () => {
    expect(await run('start', 'Forward orders', 'x', '--follow', '--timeout', '1s')).toMatchObject({ exitStatus: 124 })
    const args = ['start', 'Forward orders', 'x', '--follow']
    expect(await wf(keyEnv(), args, { interrupted: AbortSignal.abort() })).toMatchObject({ exitStatus: 130 })
  })

  test.each<[string[], number, string]>([
    [['keys', 'list'], 1, 'a command of operators: it needs the database'],
    [['listen', '3000', '--source', 'Order intake'], 1, '--source needs the database'],
    [['runs', 'list'], 2, 'name the session'],
    [['runs', 'show', '01a1fd4e'], 2, 'the whole id'],
    [['logs', '--follow', '--run', '01a1fd4e'], 2, 'With an API key, follow a run'],
    [['runs', 'list', '--session', '01a1fd4e', '--status', 'failed'], 2, 'leave it out: the newest runs of a session'],
    [
      ['logs', '--session', '01a1fd4e', '--outcome', 'unknown'],
      2,
      'leave it out: the payloads of a run, or of the latest 20',
    ],
    [['logs', 'Order intake'], 2, 'name a run or a session'],
    [['start', 'Off', 'x'], 1, 'workflow_inactive'],
    [['start', 'Forward orders', ''], 1, 'context'],
    [['whoami', '--json', 'more'], 2, 'too many arguments'],
    [['workflows', 'list', '--organization', 'Other'], 1, 'The API key is one of Acme, not of Other.'],
  ])('says what it cannot do, and what to do: %j', async (args, exitStatus, message) => {
    expect(await run(...args)).toMatchObject(failure(message, exitStatus))
  })

  test('asks to sign in where neither a key nor a database is set up', async () => {
    expect((await wf({}, ['runs', 'list'])).stderr).toContain('wf login URL')
  })
})
