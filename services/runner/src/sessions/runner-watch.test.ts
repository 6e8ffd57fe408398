import { expect, test } from '@jest/globals'
import { createLogger } from '@workflow-service/service-kit'
import { waitUntil } from '@workflow-service/testkit'
import { watchRunners } from './runner-watch.ts'

test('a runner that has its lock again after a check that failed no longer counts as ended', async () => {
  const checks = [['two'], ['two'], ['two'], new Error('The statement timed out'), []]
  let left = checks.length
  const query = async (statement: unknown) => {
    if (typeof statement === 'string') return { rows: [] }
    const unlocked = checks[checks.length - left--] ?? []
    if (unlocked instanceof Error) throw unlocked
    return { rows: unlocked.map((owner) => ({ owner })) }
  }
  const client = { on: () => {}, connect: async () => {}, query, end: async () => {} }
  const db = { pool: { query }, createClient: () => client } as unknown as Parameters<typeof watchRunners>[0]['db']
  const logger = createLogger({ service: 'test', level: 'silent' })
  const taken: (readonly string[])[] = []
  const timing = { leaseMs: 60_000, checkRunnersMs: 5 }
  const watch = watchRunners({ db, owner: 'one', timing, logger }, (owners) => taken.push(owners))
  await waitUntil(() => left < 0)
  await watch.stop(false)
  expect([taken[0], taken.at(-1)]).toEqual([['two'], []])
})
