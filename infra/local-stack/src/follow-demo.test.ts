import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import type { ReceivedWebhook } from './demo-endpoint.ts'
import type { DemoStart, EndedRun } from './demo.ts'
import { followDemo } from './follow-demo.ts'

/** A demo whose webhook and end the test decides, and what the screen shows. */
async function startLateDemo() {
  const shown: string[] = []
  const received = Promise.withResolvers<ReceivedWebhook>()
  const ended = Promise.withResolvers<EndedRun | undefined>()
  await followDemo({
    screen: {
      warning: (message) => void shown.push(message),
      webhookReceived: (source) => void shown.push(`a webhook to ${source}`),
    },
    sourceName: 'Orders',
    start: { sentAt: new Date(0) } as DemoStart,
    details: 'wf runs show 1',
    received: received.promise,
    ended: ended.promise,
    signal: new AbortController().signal,
    lateAfterMs: 1,
  })
  const take = async (): Promise<string[]> => {
    await setImmediate()
    return shown.splice(0)
  }
  expect(await take()).toEqual([expect.stringContaining("The demo's run has not ended yet.")])
  return { received, ended, take }
}

describe('a demo that is late', () => {
  test('shows why its run has failed', async () => {
    const { ended, take } = await startLateDemo()
    ended.resolve({ status: 'failed', error: 'model_unavailable: no answer' })
    expect(await take()).toEqual(["The demo's run failed: model_unavailable: no answer"])
  })

  test('shows its webhook, or that the run has ended without one', async () => {
    const first = await startLateDemo()
    first.received.resolve({} as ReceivedWebhook)
    expect(await first.take()).toEqual(['a webhook to Orders'])
    first.ended.resolve({ status: 'succeeded', error: null })
    expect(await first.take()).toEqual([])

    const second = await startLateDemo()
    second.ended.resolve({ status: 'succeeded', error: null })
    expect(await second.take()).toEqual(["The demo's run ended without a webhook."])
  })
})
