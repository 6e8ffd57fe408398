import dns from 'node:dns'
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { SESSION_MESSAGE_TYPE, SESSIONS_DEAD_LETTER_QUEUE, SESSIONS_QUEUE } from '@workflow-service/contract'
import { createTestBroker, freePort, startProxy, type TestBroker, waitUntil } from '@workflow-service/testkit'
import { setProcessClock } from '@workflow-service/testkit/set-process-clock'
import { type Channel, type ChannelModel, connect } from 'amqplib'
import { connectRabbitMq, type SessionQueue } from '../src/index.ts'
import { openConnection, type RecoveringConnection } from '../src/open-connection.ts'
import { type SilencingProxy, startSilencingProxy } from './silencing-proxy.ts'

const message = { session_id: '0190f6a4-5f4e-7cc2-9d4a-5b8f3a3b2c1d' }

let broker: TestBroker
beforeEach(async () => {
  broker = await createTestBroker()
})
afterEach(() => broker.drop())

describe('connectRabbitMq', () => {
  let queue: SessionQueue
  let admin: { model: ChannelModel; channel: Channel }

  const open = async (url = broker.url, queueType: 'quorum' | 'classic' = 'classic') => {
    queue = connectRabbitMq({ url, queueType, connectionName: 'test' })
    await waitUntil(async () => queue.depth())
  }

  /** Connects a publisher and a consumer. Resolves to the list of their states once both are up. */
  const connectBoth = async (url: string) => {
    const states: string[] = []
    const onState = (role: string, state: string) => void states.push(`${role} ${state}`)
    queue = connectRabbitMq({ url, queueType: 'classic', connectionName: 'test', onState })
    await queue.consume(async () => {}, { prefetch: 1 })
    await waitUntil(() => states.includes('consumer up') && states.includes('publisher up'))
    return states
  }

  /** Publishes until enough is logged, and returns the errors. */
  const reasons = async (url: string, isEnough: (logged: string[]) => unknown) => {
    const logged: string[] = []
    const logger = { info() {}, warn: ({ error }: { error: string }) => void logged.push(error) }
    queue = connectRabbitMq({ url, queueType: 'classic', connectionName: 'test', logger: logger as never })
    await waitUntil(async () => {
      await queue.publish(message)
      return isEnough(logged)
    })
    return logged
  }

  beforeEach(async () => {
    const model = await connect(broker.url)
    admin = { model, channel: await model.createChannel() }
  })
  afterEach(async () => {
    await queue.close()
    await admin.model.close()
  })

  test('publishes a persistent JSON message with its type, which fails if no queue takes it, although it is confirmed', async () => {
    await open()
    expect(await queue.publish(message)).toBe('confirmed')
    const found = await admin.channel.get(SESSIONS_QUEUE, { noAck: true })
    const properties = { deliveryMode: 2, type: SESSION_MESSAGE_TYPE, contentType: 'application/json' }
    expect(found).toMatchObject({ properties })
    await admin.channel.deleteQueue(SESSIONS_QUEUE)
    expect(await queue.publish(message)).toBe('failed')
  })

  test('of several hosts, connects to one that answers, whichever it tries first', async () => {
    const { host } = new URL(broker.url)
    const url = broker.url.replace(host, `${host},127.0.0.1:${await freePort()}`)
    for (let attempt = 0; attempt < 4; attempt += 1) {
      await open(url)
      expect(await queue.publish(message)).toBe('confirmed')
      if (attempt < 3) await queue.close()
    }
  })

  test('continues to consume after its queue was deleted', async () => {
    await open()
    let received = 0
    await queue.consume(async () => void received++, { prefetch: 1 })
    await queue.publish(message)
    await waitUntil(() => received === 1)
    await admin.channel.deleteQueue(SESSIONS_QUEUE)
    await waitUntil(async () => (await queue.publish(message)) === 'confirmed')
    await waitUntil(() => received === 2)
    expect(await queue.depth()).toEqual({ ready: 0, dead: 0 })
  })

  test('declares a queue that was deleted again when it is asked for its length', async () => {
    await open()
    await admin.channel.deleteQueue(SESSIONS_DEAD_LETTER_QUEUE)
    await expect(queue.depth()).rejects.toThrow('NOT_FOUND')
    expect(await queue.depth()).toEqual({ ready: 0, dead: 0 })
  })

  test('closes channels that open too late for their request', async () => {
    await using proxy = await startSilencingProxy(broker.url)
    const url = new URL(proxy.url)
    // The channel that publishes, and one for requests.
    url.searchParams.set('channelMax', '2')
    await open(url.href)
    proxy.hold()
    await expect(queue.ping()).rejects.toThrow('did not answer within 2000 ms')
    proxy.release()
    await waitUntil(async () => queue.ping().then(() => true))
  })

  test('connects as a user whose name and password have any characters', async () => {
    await open(await broker.createUser({ suffix: '-ü', password: 'p@ss/wörd:100% €' }))
    expect(await queue.publish(message)).toBe('confirmed')
  })

  describe('logs why it has no connection', () => {
    test('the permission that the user lacks to publish, with growing delays', async () => {
      // Without the queues, it would fail to declare them.
      await open()
      await queue.close()
      const endMs = performance.now() + 3_000
      const logged = await reasons(await broker.createUser({ write: '^workflow' }), () => performance.now() > endMs)
      expect(logged[0]).toContain("access to exchange 'amq.default'")
      // After 0.2, 0.4, 0.8 and 1.6 s: a connection that each message closes is opened more and more rarely.
      expect(logged.length).toBeLessThanOrEqual(5)
    })

    test('the virtual host that does not exist', async () => {
      const url = Object.assign(new URL(broker.url), { pathname: '/none' }).href
      const [reason] = await reasons(url, ({ length }) => length > 0)
      expect(reason).toMatch(/^RabbitMQ refused the virtual host/)
      await expect(queue.ping()).rejects.toThrow('RabbitMQ refused the virtual host')
    })

    test('each address of a host that has several', async () => {
      const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }))
      using lookup = jest.spyOn(dns, 'lookup')
      lookup.mockImplementation(((_name: string, _options: object, found: (...found: unknown[]) => void) =>
        found(null, addresses)) as never)
      const port = await freePort()
      const [reason] = await reasons(`amqp://several.test:${port}`, ({ length }) => length > 0)
      expect(reason).toBe(`connect ECONNREFUSED 127.0.0.1:${port}, connect ECONNREFUSED 127.0.0.2:${port}`)
    })

    test('each reason once, when there are several', async () => {
      await using proxy = await startProxy(broker.url)
      await proxy.die()
      const url = Object.assign(new URL(broker.url), { port: new URL(proxy.url).port, password: 'wrong' }).href
      let comingBack: Promise<void> | undefined
      const logged = await reasons(url, ({ length }) => {
        if (length > 0) comingBack ??= proxy.comeBack()
        return length > 1
      })
      await comingBack
      expect(logged).toEqual([expect.stringContaining('ECONNREFUSED'), expect.stringContaining('ACCESS_REFUSED')])
    })
  })

  test('uses a queue that exists with other arguments as it is', async () => {
    await admin.channel.assertQueue(SESSIONS_QUEUE, { durable: true })
    await open(broker.url, 'quorum')
    let received = 0
    await queue.consume(async () => void received++, { prefetch: 1 })
    expect(await queue.publish(message)).toBe('confirmed')
    await waitUntil(() => received === 1)
  })

  test('notices a frozen broker by its heartbeats, and closes without its answer', async () => {
    await using proxy = await startSilencingProxy(broker.url)
    const url = new URL(proxy.url)
    // The default of 5 s would take 15 s here.
    url.searchParams.set('heartbeat', '1')
    const states = await connectBoth(url.href)
    proxy.isSilent = true
    proxy.silence()
    expect(await queue.publish(message)).toBe('failed')
    // The consumer sends nothing itself, so it can notice the silence only by the missing heartbeats.
    const areDown = () => states.includes('consumer down') && states.includes('publisher down')
    await waitUntil(areDown, { timeoutMs: 30_000 })
    await queue.close()
  })

  test('keeps a connection whose broker is late to confirm while the clock is set forward', async () => {
    const proxy = await startSilencingProxy(broker.url)
    const states = await connectBoth(proxy.url)
    proxy.silence()
    const published = queue.publish(message)
    setProcessClock(3_600_000)
    const monotonic = jest.spyOn(performance, 'now')
    try {
      // The check of what is not confirmed yet, every 5 s.
      await waitUntil(() => monotonic.mock.calls.length > 0)
      expect(states).not.toContain('publisher down')
    } finally {
      jest.restoreAllMocks()
      jest.useRealTimers()
      await proxy[Symbol.asyncDispose]()
    }
    expect(await published).toBe('failed')
  })

  test('publishes and consumes again when a broker that was down is back, also if it was started meanwhile', async () => {
    await using proxy = await startProxy(broker.url)
    const url = Object.assign(new URL(broker.url), { port: new URL(proxy.url).port }).href
    const received = { before: 0, meanwhile: 0 }
    await open(url)
    await queue.consume(async () => void received.before++, { prefetch: 1 })
    await proxy.die()
    await waitUntil(async () => (await queue.publish(message)) === 'failed')
    const late = connectRabbitMq({ url, queueType: 'classic', connectionName: 'test' })
    try {
      await late.consume(async () => void received.meanwhile++, { prefetch: 1 })
      expect(await late.publish(message)).toBe('failed')
      await expect(late.ping()).rejects.toThrow('not connected')
      await proxy.comeBack()
      const publishBoth = async () => {
        const outcomes = await Promise.all([queue.publish(message), late.publish(message)])
        return outcomes.every((outcome) => outcome === 'confirmed') && received.before > 0 && received.meanwhile > 0
      }
      await waitUntil(publishBoth, { timeoutMs: 40_000 })
    } finally {
      await late.close()
    }
  })
})

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

/** Opens a connection through a proxy, runs the check, and closes both. */
async function withConnection<Result>(
  { isSilent = false, setUp = async () => {} }: ProxiedOptions,
  check: (connected: ProxiedConnection) => Promise<Result>,
): Promise<Result> {
  await using proxy = await startSilencingProxy(broker.url)
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
  }
}

describe('openConnection', () => {
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
