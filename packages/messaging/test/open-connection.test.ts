import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createTestBroker, type TestBroker, waitUntil } from '@workflow-service/testkit'
import type { ChannelModel } from 'amqplib'
import { openConnection, type RecoveringConnection } from '../src/open-connection.ts'
import { type SilencingProxy, startSilencingProxy } from './silencing-proxy.ts'

interface ProxiedConnection {
  proxy: SilencingProxy
  connection: RecoveringConnection
  states: string[]
}

interface ProxiedOptions {
  /** Whether the proxy forwards nothing at first. */
  isSilent?: boolean
  /** Called for each new connection; `attempt` counts from 1. */
  setUp?: (model: ChannelModel, attempt: number, proxy: SilencingProxy) => Promise<unknown>
}

const REPLACED = { states: ['down', 'up'], isOpen: [false, true] }

describe('openConnection', () => {
  let broker: TestBroker
  beforeAll(async () => {
    broker = await createTestBroker()
  }, 180_000)
  afterAll(() => broker.drop())

  /** Opens a connection through a proxy, runs the check, and closes both. */
  const withConnection = async <Result>(
    { isSilent = false, setUp = async () => {} }: ProxiedOptions,
    check: (connected: ProxiedConnection) => Promise<Result>,
  ): Promise<Result> => {
    const proxy = await startSilencingProxy(broker.url)
    proxy.isSilent = isSilent
    const states: string[] = []
    let attempts = 0
    const onState = (_role: string, state: string) => void states.push(state)
    const connection = openConnection(
      'consumer',
      { url: proxy.url, queueType: 'classic', connectionName: 'test', onState },
      async (model) => void (await setUp(model, ++attempts, proxy)),
    )
    try {
      return await check({ proxy, connection, states })
    } finally {
      await connection.close()
      await proxy.close()
    }
  }

  // Side by side, because each waits for a time-out of 5 s.
  test('replaces a connection whose broker does not answer', async () => {
    const replaced = await Promise.all([
      withConnection({ isSilent: true }, async (connected) => {
        await waitUntil(() => connected.proxy.open.length === 1)
        connected.proxy.isSilent = false
        return await waitForReplacement(connected)
      }),
      withConnection({ setUp: silenceFirst }, waitForReplacement),
    ])
    expect(replaced).toEqual([REPLACED, REPLACED])
  })

  test('replaces a connection whose set-up fails', async () => {
    expect(await withConnection({ setUp: failFirst }, waitForReplacement)).toEqual(REPLACED)
  })

  test('closes a connection whose broker does not answer', async () => {
    await withConnection({}, async ({ proxy, connection, states }) => {
      await waitUntil(() => states.includes('up'))
      proxy.silence()
      await connection.close()
      await waitUntil(() => !proxy.open.includes(true))
      expect(states).toEqual(['up'])
    })
  })
})

async function silenceFirst(model: ChannelModel, attempt: number, proxy: SilencingProxy): Promise<void> {
  if (attempt === 1) proxy.silence()
  await model.createChannel()
}

async function failFirst(model: ChannelModel, attempt: number): Promise<void> {
  const channel = await model.createChannel()
  channel.on('error', () => {})
  if (attempt === 1) await channel.checkQueue('no such queue')
}

async function waitForReplacement({ proxy, states }: ProxiedConnection) {
  await waitUntil(() => states.includes('up'), { timeoutMs: 20_000 })
  return { states, isOpen: proxy.open }
}
