import { createApiKey } from '@workflow-service/database'
import { startCustomerEndpoint } from '@workflow-service/testkit'
import { checkServiceToken } from '@workflow-service/webhook-token'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { createSetting, type Setting } from './support/setting.ts'
import { wf } from './support/wf.ts'

type Endpoint = Awaited<ReturnType<typeof startCustomerEndpoint>>

let setting: Setting
let endpoint: Endpoint

beforeAll(async () => {
  setting = await createSetting()
}, 60_000)
afterAll(async () => await setting.close())
beforeEach(async () => {
  endpoint = await startCustomerEndpoint()
})
afterEach(async () => {
  await endpoint.close()
  await setting.clear()
})

const source = (changes: object = {}) => ({
  name: 'Order intake',
  description: 'Takes orders.',
  endpoint_url: `${endpoint.url}/orders`,
  signing_secret: 'a signing secret',
  example_request_body: { order_id: 'A-1', total: 1.5 },
  ...changes,
})
const manifest = (...sources: object[]) => ({
  organization: { name: 'Acme' },
  users: [{ email: 'ada@acme.test' }],
  api_keys: [{ name: 'ci' }],
  webhook_sources: sources,
  workflows: [{ name: 'Forward', users: ['ada@acme.test'] }],
  sessions: [{ open: true }],
})
const apply = async (value: object | string, ...more: string[]) =>
  await wf(setting.env, ['apply', await setting.file('manifest.yaml', value), '--json', ...more])
const sourcesOf = (json: unknown) => (json as { webhook_sources: object[] }).webhook_sources

describe('wf apply', () => {
  test('makes an organization out of YAML and prints its ids, and once the key', async () => {
    const file = await setting.file(
      'acme.yaml',
      `# Acme
organization: { name: Acme }
api_keys: [ { name: ci } ]
webhook_sources:
  - name: Order intake
    description: Takes orders.
    endpoint_url: ${endpoint.url}/orders
    example_request_body: { order_id: A-1 }
workflows:
  - name: Forward
    triggers: [ { trigger_source: { slug: api, name: API } } ]
`,
    )
    const first = await wf(setting.env, ['apply', file, '--json'])
    expect(first).toMatchObject({ exitStatus: 0, stderr: '' })
    expect(first.json()).toMatchObject({
      organization_id: '92c5fadb-f3dd-536f-8c0a-7e2b85c8b9ab',
      api_keys: [{ name: 'ci', key: expect.stringMatching(/^wfk_/), prefix: expect.stringMatching(/^wfk_.{8}$/) }],
      workflows: [{ id: expect.any(String), name: 'Forward' }],
      webhook_sources: [{ id: expect.any(String), name: 'Order intake', outcome: 'created', verified: true }],
    })
    const second = await wf(setting.env, ['apply', file, '--json'])
    expect(second.json()).toMatchObject({ api_keys: [{ name: 'ci', outcome: 'unchanged' }] })
    expect(second.stdout).not.toContain('"key"')
  })

  test('takes the same as JSON, indented with tabs', async () => {
    const file = await setting.file('acme.json', JSON.stringify(manifest(source()), null, '\t'))
    expect(await wf(setting.env, ['apply', file])).toMatchObject({ exitStatus: 0 })
  })

  test('prints a given key, and a table for people', async () => {
    const { key } = createApiKey()
    const file = await setting.file('acme.json', { organization: { name: 'Acme' }, api_keys: [{ name: 'ci', key }] })
    const { stdout, exitStatus } = await wf(setting.env, ['apply', file])
    expect(exitStatus).toBe(0)
    expect(stdout).toMatch(/^Acme {2}92c5fadb-f3dd-536f-8c0a-7e2b85c8b9ab {2}created\n/)
    expect(stdout).toContain(`ci    created  read, start  ${key}`)
  })

  test('asks the endpoint of a new source to confirm, once, with its secret', async () => {
    await apply(manifest(source()))
    expect(endpoint.requests).toHaveLength(1)
    const [request] = endpoint.requests
    expect(request?.json).toMatchObject({
      type: 'service.webhook.verification',
      data: { target_url: `${endpoint.url}/orders`, signing_secret: 'a signing secret' },
    })
    expect(checkServiceToken(request?.headers['x-service-token'], 'a signing secret').ok).toBe(true)
  })

  test('does not ask again while nothing changes', async () => {
    await apply(manifest(source()))
    const again = await apply(manifest(source()))
    expect(sourcesOf(again.json())).toMatchObject([{ outcome: 'unchanged', verified: true }])
    expect(endpoint.requests).toHaveLength(1)
  })

  test.each<[string, () => object]>([
    ['secret', () => ({ signing_secret: 'another secret' })],
    ['removed secret', () => ({ signing_secret: null })],
    ['URL', () => ({ endpoint_url: `${endpoint.url}/elsewhere` })],
    ['example', () => ({ example_request_body: { order_id: 'A-1', total: 2.5 } })],
    ['description', () => ({ description: 'Other.' })],
  ])('asks again after another %s', async (_what, changes) => {
    await apply(manifest(source()))
    const changed = await apply(manifest(source(changes())))
    expect(sourcesOf(changed.json())).toMatchObject([{ outcome: 'changed', verified: true }])
    expect(endpoint.requests).toHaveLength(2)
  })

  test('keeps the stored secret where the manifest names none', async () => {
    await apply(manifest(source()))
    const again = await apply(manifest(source({ signing_secret: undefined })))
    expect(sourcesOf(again.json())).toMatchObject([{ outcome: 'unchanged' }])
  })

  test('applies everything else when an endpoint refuses, says why, and exits with 1', async () => {
    endpoint.answerWith((request) => ({ status: request.path === '/no' ? 401 : 204 }))
    const refused = source({ name: 'Refuser', endpoint_url: `${endpoint.url}/no` })
    const { exitStatus, json } = await apply(manifest(refused, source()))
    expect(exitStatus).toBe(1)
    expect(sourcesOf(json())).toMatchObject([
      { name: 'Refuser', outcome: 'failed', verified: false, error: { code: 'verification_failed', reason: 'status' } },
      { name: 'Order intake', outcome: 'created' },
    ])
    expect(json()).toMatchObject({ workflows: [{ outcome: 'created' }] })
    const text = await wf(setting.env, ['apply', await setting.file('manifest.yaml', manifest(refused))])
    expect(text.stdout).toMatch(/Refuser {2}failed .*The endpoint answered 401/)
  })

  test('says of each source that the address is not public', async () => {
    const { exitStatus, json } = await apply(manifest(source({ endpoint_url: 'http://10.0.0.1/orders' })))
    expect(exitStatus).toBe(1)
    expect(sourcesOf(json())).toMatchObject([{ outcome: 'failed', error: { code: 'validation_error' } }])
  })

  test('records a source with verify: false without a request, and says so each time', async () => {
    for (const outcome of ['created', 'unchanged']) {
      const { exitStatus, stderr, json } = await apply(manifest(source({ verify: false })))
      expect(exitStatus).toBe(0)
      expect(stderr).toContain('Order intake: recorded without the verification request')
      expect(sourcesOf(json())).toMatchObject([{ outcome, verified: false }])
    }
    expect(endpoint.requests).toHaveLength(0)
    const verified = await apply(manifest(source({ verify: true })))
    expect(sourcesOf(verified.json())).toMatchObject([{ outcome: 'changed', verified: true }])
    expect(endpoint.requests).toHaveLength(1)
  })

  test('applies everything else when the dispatcher is away, and says so', async () => {
    const file = await setting.file('manifest.yaml', manifest(source()))
    const { exitStatus, stdout } = await wf({ ...setting.env, DISPATCHER_URL: 'http://127.0.0.1:1' }, ['apply', file])
    expect(exitStatus).toBe(1)
    expect(stdout).toMatch(/Order intake {2}failed .*The dispatcher at http:\/\/127.0.0.1:1 does not answer/)
    expect(await setting.db.prisma.workflow.count()).toBe(1)
  })

  test('takes several files, and prints a list of them', async () => {
    const first = await setting.file('first.yaml', { organization: { name: 'First' } })
    const second = await setting.file('second.yaml', { organization: { name: 'Second' } })
    const { json } = await wf(setting.env, ['apply', first, second, '--json'])
    expect(json()).toMatchObject([{ organization: { name: 'First' } }, { organization: { name: 'Second' } }])
  })
})

describe('wf apply writes nothing and exits with 1', () => {
  test('when a manifest has faults: each with its file, path and line', async () => {
    const good = await setting.file('good.yaml', { organization: { name: 'Good' } })
    const bad = await setting.file(
      'bad.yaml',
      'organization: { name: Acme }\nworkflows:\n  - name: A\n    triggers:\n      - trigger_source: { name: API }\nusers:\n  - email: ada\n',
    )
    const { exitStatus, stderr } = await wf(setting.env, ['apply', good, bad])
    expect(exitStatus).toBe(1)
    expect(stderr).toContain(`${bad}: workflows[0].triggers[0].trigger_source.slug: is missing  (line 5)\n`)
    expect(stderr).toContain(`${bad}: users[0].email: must be an email address such as ada@acme.test  (line 7)\n`)
    expect(await setting.db.prisma.organization.count()).toBe(0)
  })

  test('when the database knows better', async () => {
    const bad = await setting.file(
      'bad.yaml',
      'organization: { name: Acme }\nworkflows:\n  - name: A\n    users: [eve@acme.test]\n',
    )
    const { exitStatus, stderr } = await wf(setting.env, ['apply', bad, '--json'])
    expect(exitStatus).toBe(1)
    expect(JSON.parse(stderr)).toMatchObject({
      error: { faults: [{ file: bad, path: 'workflows[0].users[0]', line: 4 }] },
    })
    expect(await setting.db.prisma.organization.count()).toBe(0)
  })

  test('when the dispatcher is needed and its settings are missing', async () => {
    const file = await setting.file('manifest.yaml', manifest(source()))
    const { exitStatus, stderr } = await wf({ DATABASE_URL: setting.env.DATABASE_URL }, ['apply', file])
    expect(exitStatus).toBe(1)
    expect(stderr).toMatch(/DISPATCHER_URL is missing.*\n.*INTERNAL_API_TOKEN is missing/)
    expect(await setting.db.prisma.organization.count()).toBe(0)
  })

  test('but needs no dispatcher where there are no webhook sources', async () => {
    const file = await setting.file('manifest.yaml', { organization: { name: 'Acme' } })
    expect(await wf({ DATABASE_URL: setting.env.DATABASE_URL }, ['apply', file])).toMatchObject({ exitStatus: 0 })
  })

  test('when a file cannot be read', async () => {
    const { exitStatus, stderr } = await wf(setting.env, ['apply', 'no-such-file.yaml'])
    expect({ exitStatus, stderr }).toEqual({
      exitStatus: 1,
      stderr: 'Refused. no-such-file.yaml cannot be read: there is no such file.\n',
    })
  })
})
