import { describe, expect, test } from '@jest/globals'
import { createMetrics } from './metrics.ts'
import { registerSystemMetrics, type SystemReads } from './system-metrics.ts'

const unavailable = (): Promise<never> => Promise.reject(new Error('unavailable'))

/** The samples of the gauges, with the number of reads so far. */
function setUp(changed: Partial<SystemReads> = {}) {
  const registry = createMetrics('test')
  let reads = 0
  registerSystemMetrics(registry, {
    isReporter: async () => {
      reads += 1
      return true
    },
    backlog: async () => ({ sessions: 3, oldestWaitMs: 1_500 }),
    queueDepth: async () => ({ ready: 2, dead: 1 }),
    ...changed,
  })
  return {
    readCount: () => reads,
    scrape: async () => (await registry.metrics()).split('\n').filter((line) => /^sessions?_/.test(line)),
  }
}

describe('the gauges of the whole system', () => {
  test('are exported by the reporter, with one read for each scrape', async () => {
    const { scrape, readCount } = setUp()
    for (const scrapes of [1, 2]) {
      expect(await scrape()).toEqual([
        'sessions_waiting{service="test"} 3',
        'sessions_waiting_oldest_seconds{service="test"} 1.5',
        'session_queue_messages{queue="ready",service="test"} 2',
        'session_queue_messages{queue="dead",service="test"} 1',
      ])
      expect(readCount()).toBe(scrapes)
    }
  })

  test.each<[string, Partial<SystemReads>]>([
    ['another process reports them', { isReporter: async () => false }],
    ['the database is unavailable', { isReporter: unavailable }],
    ['nothing can be read', { backlog: unavailable, queueDepth: unavailable }],
  ])('are absent while %s', async (_when, reads) => {
    expect(await setUp(reads).scrape()).toEqual([])
  })

  test('are 0 when nothing waits', async () => {
    const { scrape } = setUp({ backlog: async () => ({ sessions: 0, oldestWaitMs: null }), queueDepth: unavailable })
    expect(await scrape()).toEqual([
      'sessions_waiting{service="test"} 0',
      'sessions_waiting_oldest_seconds{service="test"} 0',
    ])
  })
})
