import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createTestBroker, type TestBroker } from '@workflow-service/testkit'
import { connect, type ChannelModel } from 'amqplib'

describe('createTestBroker', () => {
  let brokers: TestBroker[] = []
  let connections: ChannelModel[] = []

  beforeAll(async () => {
    brokers = await Promise.all([createTestBroker(), createTestBroker()])
    connections = await Promise.all(brokers.map(({ url }) => connect(url)))
    for (const connection of connections) connection.on('error', () => {})
  }, 180_000)

  afterAll(async () => {
    await Promise.all(connections.map(async (connection) => await connection.close().catch(() => {})))
    await Promise.all(brokers.map(async (broker) => await broker.drop()))
  })

  test('creates virtual hosts that do not share queues', async () => {
    const [one, other] = connections as [ChannelModel, ChannelModel]
    const channel = await one.createConfirmChannel()
    await channel.assertQueue('letters', { durable: true, arguments: { 'x-queue-type': 'quorum' } })
    channel.sendToQueue('letters', Buffer.from('hello'), { persistent: true })
    await channel.waitForConfirms()
    const message = await channel.get('letters')
    expect(message && message.content.toString()).toBe('hello')

    const elsewhere = await other.createChannel()
    elsewhere.on('error', () => {})
    await expect(elsewhere.checkQueue('letters')).rejects.toThrow('NOT_FOUND')
  })
})
