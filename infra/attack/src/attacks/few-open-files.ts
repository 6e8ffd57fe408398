import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Attack, openExpectations, tally } from '../attack.ts'
import type { AttackTarget } from '../attack-target.ts'

/** Enough for the service itself and its connections to PostgreSQL and RabbitMQ. */
const OPEN_FILES = 100
const STARTS = 75

/** Idle connections take every file descriptor of the gateway. */
export const fewFilesGateway: Attack = {
  name: 'few-files-gateway',
  services: { gateway: { limits: { openFiles: OPEN_FILES } } },
  checksLatency: false,
  async run(target, { seconds }) {
    const { expect, violations } = openExpectations()
    const { gateway } = target.services
    const { hostname, port } = new URL(gateway.url)
    const sockets: Socket[] = []
    for (let count = 0; count < 3 * OPEN_FILES; count += 1)
      sockets.push(connect({ host: hostname, port: Number(port) }).on('error', () => {}))
    await sleep(seconds * 1_000)
    for (const socket of sockets) socket.destroy()
    await sleep(500)
    const { status } = await fetch(`${gateway.url}/v1/organization`, { headers: target.headers })
    expect(status === 200, `After the attack the gateway answered ${status}.`)
    return {
      summary: `${sockets.length} idle connections to a gateway with ${OPEN_FILES} file descriptors`,
      violations,
    }
  },
}

/** Many payloads at once need more sockets than the dispatcher has: they wait, and nothing counts as tried. */
export const fewFilesDispatcher: Attack = {
  name: 'few-files-dispatcher',
  services: { dispatcher: { limits: { openFiles: OPEN_FILES } } },
  checksLatency: false,
  async run(target) {
    const { expect, violations } = openExpectations()
    await target.saveSource('Endpoint', { text: 'x' })
    const workflowId = await target.createWorkflow('Send it to "Endpoint".')
    target.endpoint.answerWith({ status: 204, delayMs: 500 })
    const ids = await target.start(workflowId, Array<string>(STARTS).fill('text: y'))
    const runs = await target.waitForRuns(ids, 30_000)
    const outcomes = await payloadOutcomes(target)
    expect(!outcomes.includes('unreachable'), `Payloads that were never tried: ${tally(outcomes)}.`)
    const statuses = runs.map(({ status, error }) => error ?? status)
    expect(
      statuses.filter((status) => status === 'succeeded').length === STARTS,
      `Of ${STARTS} runs: ${tally(statuses)}.`,
    )
    return { summary: `${STARTS} payloads at once, ${OPEN_FILES} file descriptors: ${tally(outcomes)}`, violations }
  },
}

async function payloadOutcomes({ environment }: AttackTarget): Promise<string[]> {
  const { rows } = await environment.client.query<{ outcome: string }>(
    `SELECT outcome FROM deliveries WHERE kind = 'payload'`,
  )
  return rows.map(({ outcome }) => outcome)
}
