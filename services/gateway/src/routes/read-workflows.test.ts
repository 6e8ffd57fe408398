import { expect, test } from '@jest/globals'
import { InFlightLimiter } from '@workflow-service/service-kit'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { GatewayContext } from '../gateway-context.ts'
import { listWorkflows } from './read-workflows.ts'

test('an organization has at most as many pages under way as slots, until they have been sent', async () => {
  const limits = { total: Infinity, waitMs: 60_000, maxWaiting: 10, maxWaitingPerKey: 10 }
  const reads: string[] = []
  const list = listWorkflows({
    pageSlots: new InFlightLimiter({ ...limits, perKey: 2 }),
    // A page that fails holds its slot until its response has been sent too.
    listSlots: {
      run: async (organizationId: string) => {
        reads.push(organizationId)
        throw new Error('no page')
      },
    },
  } as unknown as GatewayContext)
  const sent: (() => void)[] = []
  const onceAnswered = (callback: () => void) => void sent.push(callback)
  const send = (organizationId: string): void => {
    const request = { query: {}, principal: { organizationId }, onceAnswered } as unknown as Parameters<typeof list>[0]
    void Promise.resolve(list(request)).catch(() => {})
  }
  for (const organizationId of ['a', 'a', 'a', 'b']) send(organizationId)
  await nextTurn()
  expect(reads).toEqual(['a', 'a', 'b'])
  sent[0]?.()
  await nextTurn()
  expect(reads).toEqual(['a', 'a', 'b', 'a'])
})
