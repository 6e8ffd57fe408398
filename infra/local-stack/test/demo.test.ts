import { expect, test } from '@jest/globals'
import type { WebhookVerification } from '@workflow-service/contract'
import {
  createApiKey,
  deleteOrganization,
  deleteOrganizationRows,
  deleteWebhookSource,
  findWebhookSource,
  listOrganizations,
} from '@workflow-service/database'
import { createInternalClient } from '@workflow-service/service-kit/internal-client'
import { startCustomerEndpoint } from '@workflow-service/testkit'
import { useCliEnvironment } from '../../../packages/cli/test/support/cli-environment.ts'
import { applyDemo, readDemo, syncEndpoint } from '../src/demo.ts'

const ORGANIZATION = '7a3c1f5e-0d52-4c8e-9b1a-3f6f4f0f9a10'
const SOURCE = 'c5d0b8a2-61f4-4c0b-8a55-2a8f0f1d7e21'
const environment = useCliEnvironment()

test('the demo gets the webhook source that an earlier start could not save, and nothing that a person has deleted', async () => {
  const { db, env } = environment
  await using endpoint = await startCustomerEndpoint({ answer: { status: 500 } })
  const endpointUrl = `${endpoint.url}/orders/${SOURCE}`
  const client = createInternalClient({ url: env.DISPATCHER_URL, token: env.INTERNAL_API_TOKEN })
  /** Does what each start does, with new secrets if it gets one. Resolves to whether it has applied the manifest. */
  const start = async (newSecret?: string): Promise<boolean> => {
    const secrets = { DEMO_API_KEY: createApiKey().key, DEMO_SIGNING_SECRET: newSecret ?? 'the first secret' }
    const demo = await readDemo({ ...secrets, DEMO_ENDPOINT_URL: endpointUrl })
    const areSecretsNew = newSecret !== undefined
    const isApplied = await applyDemo(db, demo, { areSecretsNew })
    await syncEndpoint(db, client, demo, { endpointUrl, areSecretsNew })
    return isApplied
  }
  const verifiedSecret = () => (endpoint.requests.at(-1)?.json as WebhookVerification | undefined)?.data.signing_secret
  const hasSource = async (): Promise<boolean> => (await findWebhookSource(db, ORGANIZATION, SOURCE)) !== undefined

  await expect(start()).rejects.toThrow('500')
  endpoint.reset()
  expect([await start(), await hasSource(), verifiedSecret()]).toEqual([false, true, 'the first secret'])
  expect([await start('another secret'), verifiedSecret()]).toEqual([false, 'another secret'])

  await deleteWebhookSource(db, ORGANIZATION, SOURCE)
  expect([await start('a third secret'), await hasSource()]).toEqual([false, false])

  const principal = { organizationId: ORGANIZATION, userId: null, name: 'wf', address: null }
  await deleteOrganization(db, { principal, requestId: 'test' })
  while (await deleteOrganizationRows(db)) continue
  for (const newSecret of [undefined, 'a fourth secret']) expect(await start(newSecret)).toBe(false)
  expect(await listOrganizations(db, { limit: 1 })).toEqual([])
  expect(await hasSource()).toBe(false)
})
