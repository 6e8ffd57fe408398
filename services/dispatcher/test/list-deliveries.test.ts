import { beforeAll, describe, expect, test } from '@jest/globals'
import type { DeliveryOut } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { type Answer, sourcePath } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher()
let sourceId: string
/** 60 entries, newest first: three per millisecond, every tenth rejected, every twentieth a verification. */
let entries: { id: string; createdAt: Date; outcome: string; kind: string }[]

const START_MS = Date.parse('2026-01-31T09:00:00.000Z')

beforeAll(async () => {
  sourceId = await dispatcher.saveSource({}, 'never')
  entries = Array.from({ length: 60 }, (_, index) => ({
    id: newId(),
    createdAt: new Date(START_MS + Math.floor(index / 3)),
    outcome: index % 10 === 0 ? 'rejected' : 'accepted',
    kind: index % 20 === 0 ? 'verification' : 'payload',
  })).toSorted((a, b) => b.createdAt.getTime() - a.createdAt.getTime() || (a.id < b.id ? 1 : -1))
  await dispatcher.db.prisma.delivery.createMany({
    data: entries.map((entry) => ({
      ...entry,
      organizationId: dispatcher.organizationId,
      sourceId,
      status: 200,
      requestBody: { id: entry.id },
      finishedAt: entry.createdAt,
    })),
  })
})

const list = (query: string, source = sourceId): Promise<Answer> =>
  dispatcher.call('GET', `${dispatcher.sourcePath(source)}/deliveries${query}`)

/** Reads all pages. */
async function readAll(query: string, limit: number): Promise<DeliveryOut[]> {
  const found: DeliveryOut[] = []
  let cursor: string | null = null
  do {
    const next: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const { body } = await list(`?limit=${limit}${query}${next}`)
    expect(body.data.length).toBeLessThanOrEqual(limit)
    expect(body.pagination.has_more).toBe(body.pagination.next_cursor !== null)
    found.push(...body.data)
    cursor = body.pagination.next_cursor
  } while (cursor !== null)
  return found
}

const idsOf = (data: { id: string }[]): string[] => data.map(({ id }) => id)

describe('200', () => {
  test('has the newest 25 entries by default', async () => {
    const { body } = await list('')
    expect(idsOf(body.data)).toEqual(idsOf(entries.slice(0, 25)))
    expect(body.pagination).toEqual({ has_more: true, next_cursor: expect.any(String) })
  })

  test.each([1, 2, 7, 20, 59, 60, 61, 100])('pages of %i entries have every entry once, in order', async (limit) => {
    expect(idsOf(await readAll('', limit))).toEqual(idsOf(entries))
  })

  test('a new entry between two pages neither repeats nor hides others', async () => {
    const first = await list('?limit=10')
    const newer = { id: newId(), createdAt: new Date(START_MS + 60_000) }
    const data = {
      ...newer,
      organizationId: dispatcher.organizationId,
      sourceId,
      kind: 'payload',
      outcome: 'accepted',
      status: 200,
      requestBody: {},
      finishedAt: newer.createdAt,
    }
    await dispatcher.db.prisma.delivery.create({ data })
    const second = await list(`?limit=10&cursor=${first.body.pagination.next_cursor}`)
    await dispatcher.db.prisma.delivery.delete({ where: { id: newer.id } })
    expect(idsOf([...first.body.data, ...second.body.data])).toEqual(idsOf(entries.slice(0, 20)))
  })

  test.each([
    ['outcome', '&outcome=rejected', (entry: { outcome: string }) => entry.outcome === 'rejected'],
    ['kind', '&kind=verification', (entry: { kind: string }) => entry.kind === 'verification'],
    [
      'both',
      '&kind=payload&outcome=rejected',
      (entry: { kind: string; outcome: string }) => entry.kind === 'payload' && entry.outcome === 'rejected',
    ],
    [
      'time, from `since` to before `until`',
      '&since=2026-01-31T09:00:00.005Z&until=2026-01-31T10:00:00.010%2B01:00',
      (entry: { createdAt: Date }) =>
        entry.createdAt.getTime() >= START_MS + 5 && entry.createdAt.getTime() < START_MS + 10,
    ],
    ['an outcome without entries', '&outcome=timed_out', () => false],
  ])('filters by %s', async (_what, query, isWanted) => {
    expect(idsOf(await readAll(query, 4))).toEqual(idsOf(entries.filter(isWanted)))
  })

  test.each([
    'since=0000-01-01T00:00:00Z',
    'until=9999-12-31T23:59:59.999999999Z',
    `cursor=${Buffer.from(`999999999999999.${'f'.repeat(32)}`).toString('base64url')}`,
  ])('accepts extreme times: %s', async (query) => {
    expect(idsOf((await list(`?limit=60&${query}`)).body.data)).toEqual(idsOf(entries))
  })

  test('a source that was never used has an empty log', async () => {
    const fresh = await dispatcher.saveSource({}, 'never')
    expect((await list('', fresh)).body).toEqual({ data: [], pagination: { has_more: false, next_cursor: null } })
  })
})

describe('404', () => {
  test('for an unknown source and one of another organization', async () => {
    expect((await list('', newId())).status).toBe(404)
    const other = await dispatcher.createOrganization()
    expect((await dispatcher.call('GET', `${sourcePath(other, sourceId)}/deliveries`)).status).toBe(404)
  })
})

describe('422', () => {
  test.each([
    ['limit=0', 'limit', 'greater_than_equal'],
    ['limit=101', 'limit', 'less_than_equal'],
    ['limit=1e1', 'limit', 'int_parsing'],
    ['limit=', 'limit', 'int_parsing'],
    ['limit=1&limit=2', 'limit', 'int_parsing'],
    ['kind=payload&kind=payload', 'kind', 'string_type'],
    ['outcome=good', 'outcome', 'enum'],
    ['kind=ping', 'kind', 'enum'],
    ['since=yesterday', 'since', 'datetime_parsing'],
    ['until=2026-13-01T00:00:00Z', 'until', 'datetime_parsing'],
    ['cursor=nonsense', 'cursor', 'invalid_cursor'],
    [`cursor=${'a'.repeat(513)}`, 'cursor', 'string_too_long'],
    [`cursor=${Buffer.from(`9999999999999999.${'a'.repeat(32)}`).toString('base64url')}`, 'cursor', 'invalid_cursor'],
  ])('for %s', async (query, field, code) => {
    const answer = await list(`?${query}`)
    expect(answer).toMatchObject({
      status: 422,
      body: { error: { code: 'validation_error', details: [{ field, code }] } },
    })
  })

  test('not for unknown parameters', async () => {
    expect((await list('?colour=blue')).status).toBe(200)
  })
})
