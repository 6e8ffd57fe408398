import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startRabbitMq, waitUntil, type PrivateRabbitMq } from '@workflow-service/testkit'
import { connect, type ChannelModel } from 'amqplib'
import { greets } from '../src/rabbitmq.ts'

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
  test('keeps a persistent message when it is killed, at the same address', async () => {
    const before = await connected()
    const channel = await before.createConfirmChannel()
    channel.on('error', () => {})
    await channel.assertQueue('kept', { durable: true })
    channel.sendToQueue('kept', Buffer.from('hello'), { persistent: true })
    await channel.waitForConfirms()
    const closed = new Promise((done) => before.once('close', done))
    const { pid } = broker
    await broker.kill()
    await closed
    expect(await greets(broker.port)).toBe(false)

    await broker.restart()
    expect(broker.pid).not.toBe(pid)
    const after = await connected()
    const reader = await after.createChannel()
    const message = await reader.get('kept')
    expect(message && message.content.toString()).toBe('hello')
    await after.close()
  }, 120_000)

  test('answers nothing while it is paused, and does again afterwards', async () => {
    broker.pause()
    expect(await greets(broker.port)).toBe(false)
    broker.resume()
    expect(await waitUntil(() => greets(broker.port))).toBe(true)
  })

  test('stops in an orderly way on SIGTERM', async () => {
    await broker.kill('SIGTERM')
    expect(await greets(broker.port)).toBe(false)
    await broker.restart()
    expect(await greets(broker.port)).toBe(true)
  }, 120_000)
})
