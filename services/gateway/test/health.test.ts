import { describe, expect, test } from '@jest/globals'
import { startableWorkflow } from './support/test-gateway.ts'
import { useTestGateway } from './support/use-test-gateway.ts'

const gateway = useTestGateway()

describe('the public port', () => {
  test('answers /healthz without a key', async () => {
    const answer = await fetch(`${gateway.url}/healthz`)
    expect([answer.status, await answer.json()]).toEqual([200, { status: 'ok' }])
  })

  test.each(['/readyz', '/metrics'])('does not answer %s, with or without a key', async (path) => {
    expect((await gateway.get(path, { key: null })).status).toBe(401)
    expect((await gateway.get(path)).status).toBe(404)
  })
})

describe('the metrics port', () => {
  test('reports each dependency, with the broker as an optional one', async () => {
    const answer = await fetch(`${gateway.metricsUrl}/readyz`)
    expect([answer.status, await answer.json()]).toEqual([
      200,
      { status: 'ok', checks: { postgres: 'ok', rabbitmq: 'ok' } },
    ])
  })

  test('does not serve the API', async () => {
    const headers = { Authorization: `Bearer ${gateway.organization.key}` }
    expect((await fetch(`${gateway.metricsUrl}/v1/organization`, { headers })).status).toBe(404)
  })

  test('counts requests by operation and status, starts by outcome, and session messages', async () => {
    const workflow = startableWorkflow()
    await gateway.apply({ workflows: [workflow] }, gateway.organization.id)
    await gateway.start(String(workflow['id']), { context: 'go' })
    await gateway.get('/nowhere')
    const text = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
    const lines = [
      'gateway_request_duration_seconds_count{service="gateway",operation="startWorkflow",status="202"} 1',
      'gateway_request_duration_seconds_count{service="gateway",operation="none",status="404"} ',
      'gateway_starts_total{kind="accepted",service="gateway"} 1',
      'gateway_wake_ups_total{outcome="confirmed",service="gateway"} 1',
      'gateway_start_batch_size_count{service="gateway"} 1',
      'gateway_broker_up{service="gateway"} 1',
      'process_cpu_seconds_total{',
    ]
    expect(lines.filter((line) => !text.includes(`\n${line}`))).toEqual([])
  })
})
