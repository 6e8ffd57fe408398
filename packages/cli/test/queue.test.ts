import { connectRabbitMq, type SessionQueue } from '@workflow-service/messaging'
import { createTestBroker, type TestBroker, waitUntil } from '@workflow-service/testkit'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { wf } from './support/wf.ts'

let broker: TestBroker
let queue: SessionQueue

beforeAll(async () => {
  broker = await createTestBroker()
  queue = connectRabbitMq({ url: broker.url, queueType: 'classic', connectionName: 'test' })
  await waitUntil(async () => await queue.depth())
})
afterAll(async () => {
  await queue.close()
  await broker.drop()
})

const show = async (url = broker.url, ...args: string[]) =>
  await wf({ AMQP_URL: url, AMQP_QUEUE_TYPE: 'classic' }, ['queue', 'show', ...args])
const showJson = async () => (await show(broker.url, '--json')).json()

/** Publishes a message that the consumer rejects. */
async function rejectMessage(): Promise<void> {
  await queue.publish({ session: 1 } as never)
  const consumer = await queue.consume(async () => {}, { prefetch: 10 })
  await waitUntil(async () => (await queue.depth()).dead > 0)
  await consumer.close()
}

describe('wf queue show', () => {
  test('shows how many messages wait, and why each dead letter was rejected', async () => {
    await queue.publish({ session_id: '01890a5d-ac96-774b-bcce-b302099a8057' })
    expect(await showJson()).toEqual({ ready: 1, dead: 0, dead_letters: [] })
    await rejectMessage()
    const letter = { reason: 'wrong_shape', body: '{"session":1}', died_at: expect.any(String) }
    expect(await showJson()).toMatchObject({ ready: 0, dead: 1, dead_letters: [letter] })
    const { stdout } = await show()
    expect(stdout).toMatch(/^0 waiting, 1 dead-lettered\n\nDEAD SINCE .*\n.* wrong_shape .*\{"session":1\}\n$/s)
  })

  test('gives the reason of RabbitMQ when the user may not read the dead letters', async () => {
    await rejectMessage()
    const { exitStatus, stderr } = await show(await broker.createUser({ read: '^$' }))
    expect(exitStatus).toBe(1)
    expect(stderr).toMatch(/^Error: RabbitMQ at .* access to queue 'workflow\.sessions\.dead'/)
  })

  test('names the server when RabbitMQ does not answer, without the password', async () => {
    const urls = ['amqp://u:hunter2@127.0.0.1:1', 'amqps://u:hunter2@127.0.0.1:1,127.0.0.2']
    const [one, several] = await Promise.all(urls.map((AMQP_URL) => wf({ AMQP_URL }, ['queue', 'show'])))
    const { exitStatus, stderr } = one!
    expect(exitStatus).toBe(1)
    expect(stderr).toMatch(/^Error: RabbitMQ at 127\.0\.0\.1:1 does not answer/)
    expect(stderr).not.toContain('hunter2')
    expect(stderr).toContain('connect ECONNREFUSED 127.0.0.1:1')
    expect(several!.stderr).toMatch(/^Error: RabbitMQ at 127\.0\.0\.1:1,127\.0\.0\.2:5671 does not answer/)
  })
})
