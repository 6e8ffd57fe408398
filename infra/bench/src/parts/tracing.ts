import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BenchOptions } from '../bench-options.ts'
import { createWorkflow } from '../customer.ts'
import { startEnvironment } from '../environment.ts'
import type { Figure } from '../figure.ts'
import { measureAlternately, pieceSeconds } from '../measure-alternately.ts'
import { requestsPerSecond } from '../requests-per-second.ts'
import { seedOrganization } from '../seed.ts'

const CONNECTIONS = 64
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

/** Measures what a trace costs a start: its context stored with the start, and spans exported for every start. */
export async function measureTracing(options: BenchOptions): Promise<Figure[]> {
  const environment = await startEnvironment(options)
  const receiver = await startReceiver()
  try {
    const { organizationId, apiKey } = await seedOrganization(environment.client)
    const workflowId = await createWorkflow(environment.client, organizationId)
    const untraced = await environment.startGateway()
    const { port } = receiver.address() as AddressInfo
    const tracing = await environment.startGateway({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` })
    const startsPerSecond = (gateway: { url: string }, headers: Record<string, string> = {}): Promise<number> =>
      requestsPerSecond({
        url: `${gateway.url}/v1/workflows/${workflowId}/start`,
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ context: '{"order_id": "A-1001", "total": 99.5}' }),
        connections: CONNECTIONS,
        seconds: pieceSeconds(options),
      })
    await startsPerSecond(untraced)
    await startsPerSecond(tracing)

    options.logProgress('POST start without a trace, with one, and with exported spans')
    const { value: plain, baselines } = await measureAlternately(options, () => startsPerSecond(untraced), {
      traced: () => startsPerSecond(untraced, { traceparent: TRACEPARENT }),
      exported: () => startsPerSecond(tracing, { traceparent: TRACEPARENT }),
    })
    const baseline = { name: 'without a trace', value: plain }
    return [
      {
        name: 'POST start with a trace',
        value: baselines.traced,
        unit: '/s',
        baseline,
        target: { kind: 'at least', ratio: 0.95 },
      },
      { name: 'POST start with exported spans', value: baselines.exported, unit: '/s', baseline },
    ]
  } finally {
    receiver.close()
    receiver.closeAllConnections()
    await environment.close()
  }
}

/** Takes the spans, and drops them. */
async function startReceiver(): Promise<Server> {
  const receiver = createServer((req, res) => void req.resume().on('end', () => res.end()))
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  return receiver
}
