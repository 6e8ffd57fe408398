import { randomBytes } from 'node:crypto'
import { startCustomerEndpoint } from '@workflow-service/testkit'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { orderIntakeSource, useCliEnvironment } from './support/cli-environment.ts'
import { wf } from './support/wf.ts'

const environment = useCliEnvironment()
let endpoint: Awaited<ReturnType<typeof startCustomerEndpoint>>

beforeEach(async () => {
  endpoint = await startCustomerEndpoint()
  const source = orderIntakeSource(endpoint.url, { signing_secret: 'hunter2-hunter2' })
  await environment.apply({ organization: { name: 'Acme' }, webhook_sources: [source] })
})
afterEach(async () => {
  await endpoint.close()
  await environment.clear()
})

const rotate = async (secretsKey: string) =>
  await wf({ ...environment.env, SECRETS_KEY: secretsKey }, ['secrets', 'rotate', '--json'])
const newKey = () => randomBytes(32).toString('base64')

describe('wf sources list', () => {
  test('shows the name, the endpoint and whether requests are signed, never the secret', async () => {
    const { stdout } = await wf(environment.env, ['sources', 'list'])
    expect(stdout).toMatch(new RegExp(`Order intake {2}[0-9a-f-]{36} {2}yes {5}\\d{4}-.* ${endpoint.url}/orders\n$`))
    const json = await wf(environment.env, ['sources', 'list', '--json'])
    expect(json.json()).toMatchObject([{ name: 'Order intake', has_signing_secret: true }])
    expect(stdout + json.stdout).not.toContain('hunter2')
  })
})

describe('wf sources test', () => {
  test('sends one verification request for the stored source and shows the answer', async () => {
    const { exitStatus, stdout } = await wf(environment.env, ['sources', 'test', 'ORDER INTAKE'])
    expect(exitStatus).toBe(0)
    expect(stdout).toMatch(/^Confirmed\. Order intake answered with status 204 after \d+ ms\.\n$/)
    expect(endpoint.requests).toHaveLength(2)
    expect(endpoint.requests[1]?.json).toMatchObject({ data: { signing_secret: 'hunter2-hunter2' } })
  })

  test('exits with 1 and shows the reason when the endpoint does not confirm', async () => {
    endpoint.answerWith({ status: 500 })
    const { exitStatus, stdout } = await wf(environment.env, ['sources', 'test', 'Order intake'])
    expect(exitStatus).toBe(1)
    expect(stdout).toMatch(/^Not confirmed\. Order intake: The endpoint answered 500/)
    const json = await wf(environment.env, ['sources', 'test', 'Order intake', '--json'])
    expect(json.json()).toMatchObject({ kind: 'verification', outcome: 'rejected', status: 500 })
  })

  test('rejects an unknown name and lists the existing ones', async () => {
    expect(await wf(environment.env, ['sources', 'test', 'Orders'])).toMatchObject({
      exitStatus: 1,
      stderr: 'Error: Acme has no webhook source "Orders". It has:\n  Order intake\n',
    })
  })

  test('names the setting when the dispatcher rejects the token', async () => {
    const env = { ...environment.env, INTERNAL_API_TOKEN: 'x'.repeat(40) }
    const { exitStatus, stderr } = await wf(env, ['sources', 'test', 'Order intake'])
    expect(exitStatus).toBe(1)
    expect(stderr).toMatch(/rejected the token\. Set INTERNAL_API_TOKEN to the value/)
    expect(stderr).not.toContain('xxxx')
  })
})

describe('wf secrets rotate', () => {
  test('encrypts every secret with the first key, so that the old one can be removed', async () => {
    const next = newKey()
    expect((await rotate(`${next},${environment.env['SECRETS_KEY']}`)).json()).toEqual({
      rotated: 1,
      current: 0,
      failed: [],
    })
    expect((await rotate(next)).json()).toEqual({ rotated: 0, current: 1, failed: [] })
  })

  test('exits with 1 and names each source whose key is not listed', async () => {
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
