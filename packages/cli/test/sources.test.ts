import { randomBytes } from 'node:crypto'
import { startCustomerEndpoint } from '@workflow-service/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { createSetting, type Setting } from './support/setting.ts'
import { wf } from './support/wf.ts'

let setting: Setting
let endpoint: Awaited<ReturnType<typeof startCustomerEndpoint>>

beforeAll(async () => {
  setting = await createSetting()
}, 60_000)
afterAll(async () => await setting.close())
beforeEach(async () => {
  endpoint = await startCustomerEndpoint()
  const source = {
    name: 'Order intake',
    description: 'Takes orders.',
    endpoint_url: `${endpoint.url}/orders`,
    signing_secret: 'hunter2-hunter2',
    example_request_body: { order_id: 'A-1' },
  }
  const manifest = { organization: { name: 'Acme' }, webhook_sources: [source] }
  await wf(setting.env, ['apply', await setting.file('m.yaml', manifest)])
})
afterEach(async () => {
  await endpoint.close()
  await setting.clear()
})

const rotate = async (secretsKey: string) =>
  await wf({ ...setting.env, SECRETS_KEY: secretsKey }, ['secrets', 'rotate', '--json'])
const newKey = () => randomBytes(32).toString('base64')

describe('wf sources list', () => {
  test('shows name, endpoint and whether requests are signed, never the secret', async () => {
    const { stdout } = await wf(setting.env, ['sources', 'list'])
    expect(stdout).toMatch(new RegExp(`Order intake {2}[0-9a-f-]{36} {2}yes {5}\\d{4}-.* ${endpoint.url}/orders\n$`))
    const json = await wf(setting.env, ['sources', 'list', '--json'])
    expect(json.json()).toMatchObject([{ name: 'Order intake', has_signing_secret: true }])
    expect(stdout + json.stdout).not.toContain('hunter2')
  })
})

describe('wf sources test', () => {
  test('sends one verification request with what is stored, and tells the answer', async () => {
    const { exitStatus, stdout } = await wf(setting.env, ['sources', 'test', 'ORDER INTAKE'])
    expect(exitStatus).toBe(0)
    expect(stdout).toMatch(/^Confirmed\. Order intake answered with status 204 after \d+ ms\.\n$/)
    expect(endpoint.requests).toHaveLength(2)
    expect(endpoint.requests[1]?.json).toMatchObject({ data: { signing_secret: 'hunter2-hunter2' } })
  })

  test('exits with 1 and says why when the endpoint does not confirm', async () => {
    endpoint.answerWith({ status: 500 })
    const { exitStatus, stdout } = await wf(setting.env, ['sources', 'test', 'Order intake'])
    expect(exitStatus).toBe(1)
    expect(stdout).toMatch(/^Not confirmed\. Order intake: The endpoint answered 500/)
    const json = await wf(setting.env, ['sources', 'test', 'Order intake', '--json'])
    expect(json.json()).toMatchObject({ kind: 'verification', outcome: 'rejected', status: 500 })
  })

  test('refuses a name that is not there, and lists those that are', async () => {
    expect(await wf(setting.env, ['sources', 'test', 'Orders'])).toMatchObject({
      exitStatus: 1,
      stderr: 'Refused. Acme has no webhook source "Orders". It has:\n  Order intake\n',
    })
  })

  test('says which setting is wrong when the dispatcher does not take the token', async () => {
    const env = { ...setting.env, INTERNAL_API_TOKEN: 'x'.repeat(40) }
    const { exitStatus, stderr } = await wf(env, ['sources', 'test', 'Order intake'])
    expect(exitStatus).toBe(1)
    expect(stderr).toMatch(/does not know the token: INTERNAL_API_TOKEN must be the one it runs with/)
    expect(stderr).not.toContain('xxxx')
  })
})

describe('wf secrets rotate', () => {
  test('encrypts every secret under the first key, after which the old one can go', async () => {
    const next = newKey()
    expect((await rotate(`${next},${setting.env['SECRETS_KEY']}`)).json()).toEqual({
      rotated: 1,
      current: 0,
      failed: [],
    })
    expect((await rotate(next)).json()).toEqual({ rotated: 0, current: 1, failed: [] })
  })

  test('exits with 1 and names each source whose key is not in the list', async () => {
    const { exitStatus, json } = await rotate(newKey())
    expect(exitStatus).toBe(1)
    expect(json()).toMatchObject({ rotated: 0, failed: [{ reason: expect.stringMatching(/does not list/) }] })
  })

  test('names SECRETS_KEY when it is missing', async () => {
    const { exitStatus, stderr } = await rotate('')
    expect(exitStatus).toBe(1)
    expect(stderr).toContain('SECRETS_KEY is missing')
  })
})
