import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createTestBroker, type TestBroker, waitUntil } from '@workflow-service/testkit'
import type { ChannelModel } from 'amqplib'
import { openConnection, type RecoveringConnection } from '../src/open-connection.ts'
import { SilencingProxy } from './silencing-proxy.ts'

interface ProxiedConnection {
  proxy: SilencingProxy
  connection: RecoveringConnection
  states: string[]
}

describe('openConnection', () => {
  let broker: TestBroker
  beforeAll(async () => {
    broker = await createTestBroker()
  }, 180_000)
  afterAll(() => broker.drop())

  /** Opens a connection through a proxy, runs the check and closes both. `setUp` gets the number of its call, from 1. */
  const withConnection = async <Result>(
    setUp: (model: ChannelModel, attempt: number, proxy: SilencingProxy) => Promise<unknown>,
    prepare: (proxy: SilencingProxy) => void,
    check: (connected: ProxiedConnection) => Promise<Result>,
  ): Promise<Result> => {
    const proxy = new SilencingProxy(broker.url)
    const url = await proxy.listen()
    prepare(proxy)
    const states: string[] = []
    let attempts = 0
    const connection = openConnection({
      url,
      name: 'test',
      setUp: async (model) => void (await setUp(model, ++attempts, proxy)),
      onState: (state) => states.push(state),
    })
    try {
      return await check({ proxy, connection, states })
    } finally {
      await connection.close()
      await proxy.close()
    }
  }

  const waitForReplacement = async ({ proxy, states }: ProxiedConnection) => {
    await waitUntil(() => states.includes('up'))
    return { states, isOpen: proxy.open }
  }
  const replaced = { states: ['down', 'up'], isOpen: [false, true] }

  // Side by side, because each waits for a time-out of 5 s.
  test('replaces a connection whose broker does not answer', async () => {
    const stopsBeforeHandshake = (forwarding: 'silent' | 'first_frame_only') =>
      withConnection(
        async () => {},
        (proxy) => (proxy.forwarding = forwarding),
        async (connected) => {
          await waitUntil(() => connected.proxy.open.length === 1)
          connected.proxy.forwarding = 'all'
          return await waitForReplacement(connected)
        },
      )
    const [fromTheStart, duringHandshake, whileChannelsOpen] = await Promise.all([
      stopsBeforeHandshake('silent'),
      stopsBeforeHandshake('first_frame_only'),
      withConnection(
        async (model, attempt, proxy) => {
          if (attempt === 1) proxy.silence()
          await model.createChannel()
        },
        () => {},
        waitForReplacement,
      ),
    ])
    expect({ fromTheStart, duringHandshake, whileChannelsOpen }).toEqual({
      fromTheStart: replaced,
      duringHandshake: replaced,
      whileChannelsOpen: replaced,
    })
  })

  test('replaces a connection whose set-up fails', async () => {
    const setUp = async (model: ChannelModel, attempt: number) => {
      const channel = await model.createChannel()
      channel.on('error', () => {})
      if (attempt === 1) await channel.checkQueue('no such queue')
    }
    expect(await withConnection(setUp, () => {}, waitForReplacement)).toEqual(replaced)
  })

  test('closes a connection whose broker does not answer', async () => {
    const closeInSilence = async ({ proxy, connection, states }: ProxiedConnection) => {
      await waitUntil(() => states.includes('up'))
      proxy.silence()
      await connection.close()
      await waitUntil(() => !proxy.open.includes(true))
      return states
    }
    expect(
      await withConnection(
        async () => {},
        () => {},
        closeInSilence,
      ),
    ).toEqual(['up'])
  })
})
