import { createApiKey } from '@workflow-service/database'
import { type Attack, openExpectations, repeatFor, tally } from '../attack.ts'

const LIMIT = 1_000
const CONNECTIONS = 16

/** Keys with a right checksum cost a query each, and the victim has the same address. */
export const forgedKeys: Attack = {
  name: 'forged-keys',
  services: { gateway: { env: { RATE_LIMIT_PER_MINUTE: String(LIMIT) } } },
  async run({ services: { gateway } }, { seconds }) {
    const { expect, violations } = openExpectations()
    const countLookUps = async (): Promise<number> => {
      const text = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
      return Number(/^gateway_key_look_ups_total\S* (\d+)$/m.exec(text)?.[1])
    }
    const before = await countLookUps()
    const answers: number[] = []
    const sendForged = async (): Promise<void> => {
      const headers = { authorization: `Bearer ${createApiKey().key}` }
      const response = await fetch(`${gateway.url}/v1/organization`, { headers })
      await response.arrayBuffer()
      answers.push(response.status)
    }
    // On a slow machine the limit is reached later.
    for (let round = 0; round < 3 && answers.length < 2 * LIMIT; round += 1)
      await repeatFor({ seconds, connections: CONNECTIONS }, sendForged)
    const lookUps = (await countLookUps()) - before
    // Requests that are under way when the limit is reached, and the victim's key, which is looked up every 3 seconds.
    const allowed = LIMIT + CONNECTIONS + 2 * 3 * seconds
    expect(lookUps <= allowed, `${lookUps} look-ups, although the limit of failures is ${LIMIT}.`)
    return { summary: `forged keys from one address: ${tally(answers)}; ${lookUps} look-ups`, violations }
  },
}
