import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { connect } from 'amqplib'
import { type PrivateRabbitMq, startRabbitMq, waitUntil } from '../src/index.ts'
import { acceptsAmqp } from '../src/start-rabbitmq.ts'

let broker: PrivateRabbitMq

beforeAll(async () => {
  broker = await startRabbitMq()
}, 180_000)

afterAll(async () => {
  await broker.stop()
}, 60_000)

test('a private RabbitMQ can be paused, killed and restarted, and keeps confirmed messages and its URL', async () => {
  const before = await connect(broker.url)
  before.on('error', () => {})
  const channel = await before.createConfirmChannel()
  channel.on('error', () => {})
  await channel.assertQueue('kept', { durable: true })
  channel.sendToQueue('kept', Buffer.from('hello'), { persistent: true })
  await channel.waitForConfirms()

  broker.pause()
  // A thread that runs on another processor stops a moment later.
  await waitUntil(async () => !(await acceptsAmqp(broker.port)))
  broker.resume()
  await waitUntil(() => acceptsAmqp(broker.port), { timeoutMs: 30_000 })

  const { pid } = broker
  await broker.restart()
  expect(broker.pid).not.toBe(pid)
  const after = await connect(broker.url)
  after.on('error', () => {})
  const message = await (await after.createChannel()).get('kept')
  expect(message && message.content.toString()).toBe('hello')

  const closed = new Promise((resolve) => after.once('close', resolve))
  await broker.kill()
  await closed
  // A thread that runs on another processor stops a moment later.
  await waitUntil(async () => !(await acceptsAmqp(broker.port)))
}, 180_000)
