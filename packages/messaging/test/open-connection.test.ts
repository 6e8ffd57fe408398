import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { createTestBroker, type TestBroker, waitUntil } from '@workflow-service/testkit'
import type { ChannelModel } from 'amqplib'
import { openConnection, type RecoveringConnection } from '../src/open-connection.ts'
import { SilencingProxy } from './silencing-proxy.ts'

describe('openConnection', () => {
  let broker: TestBroker
  let proxy: SilencingProxy
  let url: string
  let connection: RecoveringConnection
  beforeAll(async () => {
    broker = await createTestBroker()
  }, 180_000)
  afterAll(() => broker.drop())
  beforeEach(async () => {
    proxy = new SilencingProxy(broker.url)
    url = await proxy.listen()
  })
  afterEach(async () => {
    await connection.close()
    await proxy.close()
  })

  const open = (setUp: (model: ChannelModel) => Promise<void>) => {
    const states: string[] = []
    connection = openConnection({ url, name: 'test', setUp, onState: (state) => states.push(state) })
    return states
  }

  test.each([
    ['never answers', 'silent'],
    ['stops answering during the handshake', 'first_frame_only'],
  ] as const)('replaces a connection whose broker %s', async (_when, forwarding) => {
    proxy.forwarding = forwarding
    const states = open(async () => {})
    await waitUntil(() => proxy.open.length === 1)
    proxy.forwarding = 'all'
    await waitUntil(() => states.includes('up'))
    expect(states).toEqual(['down', 'up'])
    expect(proxy.open).toEqual([false, true])
  })

  test('replaces a connection whose broker stops answering while the channels open', async () => {
    let setUps = 0
    const states = open(async (model) => {
      if (++setUps === 1) proxy.silence()
      await model.createChannel()
    })
    await waitUntil(() => states.includes('up'))
    expect(states).toEqual(['down', 'up'])
    expect(proxy.open).toEqual([false, true])
  })

  test('replaces a connection whose set-up fails', async () => {
    let setUps = 0
    const states = open(async (model) => {
      const channel = await model.createChannel()
      channel.on('error', () => {})
      if (++setUps === 1) await channel.checkQueue('no such queue')
    })
    await waitUntil(() => states.includes('up'))
    expect(states).toEqual(['down', 'up'])
  })

  test('closes a connection whose broker does not answer', async () => {
    const states = open(async () => {})
    await waitUntil(() => states.includes('up'))
    proxy.silence()
    await connection.close()
    await waitUntil(() => !proxy.open.includes(true))
    expect(states).toEqual(['up'])
  })
})
