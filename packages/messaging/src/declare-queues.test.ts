import { SESSIONS_DEAD_LETTER_QUEUE, SESSIONS_QUEUE } from '@workflow-service/contract'
import { expect, test } from '@jest/globals'
import type { ChannelModel } from 'amqplib'
import { declareQueues } from './declare-queues.ts'

/** A connection on which declaring one queue fails with this reply code. */
function failingOn(queue: string, code: number): ChannelModel {
  const channel = {
    on: () => {},
    close: async () => {},
    assertQueue: async (name: string) => {
      if (name === queue) throw Object.assign(new Error('refused'), { code })
    },
    checkQueue: async () => Promise.reject(new Error('no such queue')),
  }
  return { createChannel: async () => channel } as unknown as ChannelModel
}

async function mismatchesOf(model: ChannelModel): Promise<string[]> {
  const queues: string[] = []
  await declareQueues(model, 'quorum', (queue) => void queues.push(queue))
  return queues
}

test('does without the dead-letter queue while its node of the cluster is down, and not without the session queue', async () => {
  expect(await mismatchesOf(failingOn(SESSIONS_DEAD_LETTER_QUEUE, 404))).toEqual([SESSIONS_DEAD_LETTER_QUEUE])
  await expect(mismatchesOf(failingOn(SESSIONS_QUEUE, 404))).rejects.toThrow('refused')
})

test('does not take a session queue that the limit of queues refuses for one that exists', async () => {
  await expect(mismatchesOf(failingOn(SESSIONS_QUEUE, 406))).rejects.toThrow('refused')
})
