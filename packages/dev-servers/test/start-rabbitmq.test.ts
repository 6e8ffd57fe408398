import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startRabbitMq, waitUntil, type PrivateRabbitMq } from '../src/index.ts'
import { connect, type ChannelModel } from 'amqplib'
import { acceptsAmqp } from '../src/start-rabbitmq.ts'

let broker: PrivateRabbitMq

beforeAll(async () => {
  broker = await startRabbitMq()
}, 180_000)

afterAll(async () => {
  await broker.stop()
}, 60_000)

async function connected(): Promise<ChannelModel> {
  const connection = await connect(broker.url)
  connection.on('error', () => {})
  return connection
}

describe('startRabbitMq', () => {
  test('keeps queues over a shutdown, confirmed messages over a kill, and its URL over both', async () => {
    const first = await connected()
    const declaring = await first.createChannel()
    declaring.on('error', () => {})
    await declaring.assertQueue('kept', { durable: true })
    await broker.kill('SIGTERM')
    expect(await acceptsAmqp(broker.port)).toBe(false)
    await broker.restart()

    const second = await connected()
    const publishing = await second.createConfirmChannel()
    publishing.on('error', () => {})
    publishing.sendToQueue('kept', Buffer.from('hello'), { persistent: true })
    await publishing.waitForConfirms()
    const closed = new Promise((done) => second.once('close', done))
    const { pid } = broker
    await broker.kill()
    await closed
    expect(await acceptsAmqp(broker.port)).toBe(false)
    await broker.restart()
    expect(broker.pid).not.toBe(pid)

    const third = await connected()
    const reading = await third.createChannel()
    const message = await reading.get('kept')
    expect(message && message.content.toString()).toBe('hello')
    await third.close()
  }, 180_000)

  test('answers nothing while it is paused', async () => {
    broker.pause()
    expect(await acceptsAmqp(broker.port)).toBe(false)
    broker.resume()
    expect(await waitUntil(() => acceptsAmqp(broker.port), { timeoutMs: 30_000 })).toBe(true)
  }, 60_000)
})
