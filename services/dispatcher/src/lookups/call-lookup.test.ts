import { afterEach, expect, jest, test } from '@jest/globals'
import { LOOKUP_DEADLINE_MS } from '@workflow-service/contract'
import { NO_TRACING } from '@workflow-service/service-kit'
import { createCapturedLogger } from '@workflow-service/testkit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { lookupSender } from './call-lookup.ts'

afterEach(() => {
  jest.restoreAllMocks()
})

test('the requests of a call have their time together, and the end of a session a second of its own', async () => {
  let nowMs = 0
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs)
  const deadlines: number[] = []
  const sendRequest: DispatcherContext['sendRequest'] = ({ deadlineMs }) => {
    deadlines.push(deadlineMs)
    nowMs += 4_000
    return Promise.resolve({ kind: 'timed_out', phase: 'answer', detail: 'no answer in time', durationMs: 4_000 })
  }
  const call = { lookup: { id: 'l', header_name: null }, secret: null, requestId: 'r', trace: null }
  const { logger } = createCapturedLogger({ service: 'dispatcher' })
  const send = lookupSender({ sendRequest, tracing: NO_TRACING, logger }, call)
  for (const method of ['POST', 'POST', 'POST', 'DELETE'] as const)
    await send({ url: 'https://a.test', method, headers: {} })
  expect(deadlines).toEqual([LOOKUP_DEADLINE_MS, LOOKUP_DEADLINE_MS - 4_000, LOOKUP_DEADLINE_MS - 8_000, 1_000])
})
