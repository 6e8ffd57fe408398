import { describe, expect, test } from '@jest/globals'
import { LIST_PAGE_MAX_BYTES, type WorkflowOut } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { beginTransaction, countLocked, waitUntil } from '@workflow-service/testkit'
import { startableWorkflow, type TestOrganization, useTestGateway } from './support/test-gateway.ts'

const gateway = useTestGateway()

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()
const named = (name: string, second = 0, change: object = {}) =>
  startableWorkflow({ id: newId(), name, description: '', created_at: at(second), triggers: [], ...change })
const list = (organization: TestOrganization, query: Record<string, string | number> = {}) => {
  const parameters = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
  return gateway.get(`/v1/workflows?${parameters.join('&')}`, { key: organization.key })
}
const namesOf = (data: readonly WorkflowOut[]): string[] => data.map(({ name }) => name)
const found = async (organization: TestOrganization, search: string): Promise<string[]> =>
  namesOf((await list(organization, { search, limit: 100 })).body.data)

/** Reads all pages of the list; `between` may change it between two pages. */
async function walk(
  organization: TestOrganization,
  query: Record<string, string | number>,
  between: (page: number) => Promise<void> = async () => {},
): Promise<WorkflowOut[]> {
  const seen: WorkflowOut[] = []
  let cursor: string | null = ''
  for (let page = 0; cursor !== null; page += 1) {
    const { body } = await list(organization, { ...query, cursor })
    seen.push(...body.data)
    cursor = body.pagination.next_cursor
    expect(body.pagination.has_more).toBe(cursor !== null)
    if (cursor !== null) await between(page)
  }
  return seen
}

describe('200', () => {
  test('answers an empty page for an organization without workflows', async () => {
    const organization = await gateway.apply({})
    expect((await list(organization)).body).toEqual({ data: [], pagination: { next_cursor: null, has_more: false } })
  })

  test('lists the workflows of the organization, active or not and of any scope', async () => {
    const workflows = [
      named('active', 1),
      named('inactive', 2, { is_active: false }),
      named('only me', 3, { scope: 'only_me' }),
      named('unknown scope', 4, { scope: 'something_new' }),
    ]
    const organization = await gateway.apply({ workflows })
    await gateway.apply({ workflows: [named('foreign')] })
    expect(namesOf((await list(organization)).body.data)).toEqual(['active', 'inactive', 'only me', 'unknown scope'])
  })

  test('has at most 25 workflows, or the limit of 1 to 100, and says that there are more', async () => {
    const organization = await largeOrganization()
    for (const [limit, length] of [
      ['', 25],
      ['limit=1', 1],
      ['limit=100', 100],
      ['limit=0007', 7],
    ]) {
      const { body } = await gateway.get(`/v1/workflows?${limit}`, { key: organization.key })
      expect([limit, body.data.length]).toEqual([limit, length])
      expect(body.pagination).toEqual({ next_cursor: expect.any(String), has_more: true })
    }
  })

  test('ignores an empty cursor, an empty search and unknown parameters, also repeated ones', async () => {
    const organization = await gateway.apply({ workflows: [named('a')] })
    const { body } = await gateway.get('/v1/workflows?cursor=&search=&x=1&x=2&&=', { key: organization.key })
    expect(namesOf(body.data)).toEqual(['a'])
  })
})

describe('200, page by page', () => {
  test('answers every workflow once, with any limit', async () => {
    const organization = await largeOrganization()
    const names = Array.from({ length: 101 }, (_, index) => `w${index}`)
    for (const limit of [7, 100]) expect(namesOf(await walk(organization, { limit }))).toEqual(names)
  })

  test('neither repeats nor skips a workflow while others are inserted, deleted and renamed', async () => {
    const workflows = Array.from({ length: 40 }, (_, index) => named(`w${index}`, 10 * (index + 1)))
    const organization = await gateway.apply({ workflows })
    const deleted = new Set<string>()
    const seen = await walk(organization, { limit: 3 }, async (page) => {
      // Deletes the workflow that the cursor was made from, and a later one.
      for (const deletedWorkflow of [workflows[page * 3 + 2], workflows[page * 3 + 7]].filter(
        (it) => it !== undefined,
      )) {
        deleted.add(String(deletedWorkflow['name']))
        await gateway.db.pool.query('DELETE FROM workflows WHERE id = $1', [deletedWorkflow['id']])
      }
      await gateway.db.pool.query(`UPDATE workflows SET name = name || '!' WHERE organization_id = $1`, [
        organization.id,
      ])
      await gateway.apply({ workflows: [named('before', 0), named('between', 30 * page + 45)] }, organization.id)
    })
    const isKept = ({ name }: { readonly id: string; name?: unknown }) =>
      String(name).startsWith('w') && !deleted.has(String(name).replaceAll('!', ''))
    expect(seen.filter(isKept).map(({ id }) => id)).toEqual(workflows.filter(isKept).map(({ id }) => id))
    expect(new Set(seen.map(({ id }) => id)).size).toBe(seen.length)
    expect(seen.some(({ name }) => name.startsWith('between'))).toBe(true)
    expect(seen.some(({ name }) => name.startsWith('before'))).toBe(false)
  })

  test('answers every workflow when many were created in the same millisecond, of any year', async () => {
    const times = ['0001-01-01T00:00:00.000Z', '1969-12-31T23:59:59.999Z', at(1), '9999-12-31T23:59:59.999Z']
    const groups = times.map((createdAt) =>
      Array.from({ length: 5 }, (_, index) => named(`w${index}`, 0, { created_at: createdAt })),
    )
    const organization = await gateway.apply({ workflows: groups.flat() })
    const seen = await walk(organization, { limit: 2 })
    expect(seen.map(({ id }) => id)).toEqual(groups.flatMap((group) => group.map(({ id }) => id).toSorted()))
    expect([...new Set(seen.map((each) => each.created_at))]).toEqual(times)
  })

  test('answers all results of a search page by page, however rare they are and wherever in the list', async () => {
    const workflows = Array.from({ length: 900 }, (_, index) =>
      named(
        `${index % 2 === 0 ? 'even' : 'odd'} ${index % 100 === 99 ? 'rare' : ''}${index > 600 ? 'late' : ''}`,
        index,
      ),
    )
    const organization = await gateway.apply({ workflows })
    const matching = (text: string) => workflows.map(({ name }) => String(name)).filter((name) => name.includes(text))
    for (const search of ['even', 'late', 'odd rare', 'e', '9']) {
      expect(namesOf(await walk(organization, { search, limit: 30 }))).toEqual(matching(search))
    }
  })

  test('ends a page before 2 MiB, and continues after the last workflow shown', async () => {
    const description = '\u{1F680}'.repeat(50_000)
    const workflows = Array.from({ length: 12 }, (_, index) => named(`w${index}`, index, { description }))
    // One statement for all of them, with their search index, exceeds its time limit on a busy machine.
    const organization = await gateway.apply({ workflows: workflows.slice(0, 6) })
    await gateway.apply({ workflows: workflows.slice(6) }, organization.id)
    const first = await list(organization, { limit: 100 })
    expect(Buffer.byteLength(first.text)).toBeLessThanOrEqual(LIST_PAGE_MAX_BYTES)
    expect(namesOf(first.body.data)).toEqual(workflows.slice(0, 10).map(({ name }) => name))
    expect(first.body.pagination).toEqual({ next_cursor: expect.any(String), has_more: true })
    expect(namesOf(await walk(organization, { limit: 11 }))).toEqual(workflows.map(({ name }) => name))
  })
})

describe('the share of an organization', () => {
  test('is a fifth of the connections for its lists, at most 4, and half of them for all lists; further ones wait', async () => {
    const { url } = await gateway.startAnother({ databasePoolSize: 10 })
    const large = await gateway.startAnother({ databasePoolSize: 40 })
    const [one, two, three] = await Promise.all([1, 2, 3].map(() => gateway.apply({ workflows: [named('a')] })))
    const countBlocked = () => countLocked(gateway.db.pool, 'FROM workflows')
    /** Expects so many connections to be taken while each organization asks for 6 lists, which cannot be read. */
    const expectTaken = async (count: number, organizations: (TestOrganization | undefined)[], gatewayUrl: string) => {
      using lock = await beginTransaction(gateway.db.pool)
      await lock.query('LOCK TABLE workflows')
      const pages = organizations.flatMap((organization) =>
        Array.from({ length: 6 }, () => gateway.get('/v1/workflows', { url: gatewayUrl, key: organization!.key })),
      )
      await waitUntil(async () => (await countBlocked()) === count)
      expect((await gateway.get('/v1/organization', { url: gatewayUrl })).status).toBe(200)
      expect(await countBlocked()).toBe(count)
      // Now, as they wait for 2.5 s only.
      await lock.query('COMMIT')
      expect(new Set((await Promise.all(pages)).map(({ status }) => status))).toEqual(new Set([200]))
    }
    await expectTaken(2, [one], url)
    await expectTaken(4, [one, two], url)
    await expectTaken(5, [one, two, three], url)
    await expectTaken(4, [one], large.url)
  })
})

describe('200, searching', () => {
  test('finds text in the name or in the description, but not across both', async () => {
    const organization = await gateway.apply({
      workflows: [
        named('Forward orders', 1, { description: 'to the shop' }),
        named('Other', 2, { description: 'Orders!' }),
        named('Third', 3, { description: 'nothing' }),
      ],
    })
    expect(await found(organization, 'order')).toEqual(['Forward orders', 'Other'])
    expect(await found(organization, 'shop')).toEqual(['Forward orders'])
    expect(await found(organization, 'ordersto')).toEqual([])
    expect(await found(organization, 'orders\uffffto')).toEqual([])
    expect(await found(organization, 'orders\nto')).toEqual([])
    expect(await found(organization, '\uffff')).toEqual([])
  })

  test('searches literally, regardless of case, but for the same letters, white space and order', async () => {
    const literal = ['%', '_', '\\', '\\%', '*', '.', '[a-z]', "'", '"', ';--', '$1', '\u0001', '\n']
    const pairs = [
      ['ORDER', 'order'],
      ['STRASSE', 'Straße'],
      ['İ', 'i\u0307'],
      ['i', 'İ'],
      ['\u0301', 'e\u0301'],
      ['日本', '在日本語'],
    ] as const
    const others = [
      ['é', 'e\u0301'],
      ['e', 'é'],
      ['ı', 'i'],
      ['I', 'ı'],
      ['a b', 'a  b'],
      [' order', 'order'],
      ['ordre', 'order'],
    ] as const
    const names = [...literal.map((text) => `x${text}y`), ...[...pairs, ...others].map(([, name]) => name)]
    const organization = await gateway.apply({ workflows: [...new Set(names)].map((name) => named(name)) })
    for (const text of literal) {
      const expected = names.filter((name) => name.includes(text))
      expect([text, new Set(await found(organization, text))]).toEqual([text, new Set(expected)])
    }
    for (const [search, name] of pairs)
      expect([search, await found(organization, search)]).toEqual([search, expect.arrayContaining([name])])
    for (const [search, name] of others)
      expect([search, await found(organization, search)]).toEqual([search, expect.not.arrayContaining([name])])
  })

  test('finds a renamed workflow by its new name only', async () => {
    const workflow = named('before')
    const organization = await gateway.apply({ workflows: [workflow] })
    await gateway.apply({ workflows: [{ ...workflow, name: 'after' }] }, organization.id)
    expect(await found(organization, 'before')).toEqual([])
    expect(await found(organization, 'after')).toEqual(['after'])
  })

  test('accepts 200 characters, counted as code points', async () => {
    const text = '🚀'.repeat(200)
    const organization = await gateway.apply({ workflows: [named(`x${text}`)] })
    expect(await found(organization, text)).toEqual([`x${text}`])
  })
})

describe('422', () => {
  test.each<[code: string, queries: string[]]>([
    ['greater_than_equal', ['limit=0']],
    ['less_than_equal', ['limit=101', 'limit=99999999999999999999999999', `limit=${'9'.repeat(400)}`]],
    ['int_parsing', ['', '-1', '+1', '1.0', '1e1', '0x10', '%201', '%D9%A1', '1&limit=1'].map((it) => `limit=${it}`)],
    ['int_parsing', ['limit']],
    ['string_type', ['search=a&search=a', 'cursor=&cursor=']],
    ['string_too_long', ['x', '%F0%9F%9A%80'].map((character) => `search=${character.repeat(201)}`)],
    ['string_too_long', [`cursor=${'x'.repeat(513)}`]],
    ['string_unicode', ['search=a%00b']],
    ['invalid_cursor', ['x', 'x'.repeat(512), '%00', '%F0%9F%9A%80'].map((cursor) => `cursor=${cursor}`)],
  ])('%s: %j', async (code, queries) => {
    for (const query of queries) {
      const response = await gateway.get(`/v1/workflows?${query}`)
      expect([query, response.status, response.violations]).toEqual([query, 422, [[query.split('=', 1)[0], code]]])
    }
  })

  test('reports all violations, in the order of the parameters in the contract', async () => {
    const { violations } = await gateway.get('/v1/workflows?cursor=x&limit=0&search=%00')
    expect(violations).toEqual([
      ['search', 'string_unicode'],
      ['limit', 'greater_than_equal'],
      ['cursor', 'invalid_cursor'],
    ])
  })

  test('refuses a cursor of another organization or search, or with another character', async () => {
    const workflows = ['order a', 'order b', 'order c']
    const make = () => gateway.apply({ workflows: workflows.map((name, index) => named(name, index)) })
    const [one, other] = [await make(), await make()]
    const cursor = String((await list(one, { limit: 1, search: 'order' })).body.pagination.next_cursor)
    const refused = [['cursor', 'invalid_cursor']]
    for (const limit of [1, 50]) expect((await list(one, { limit, search: 'order', cursor })).status).toBe(200)
    expect((await list(other, { search: 'order', cursor })).violations).toEqual(refused)
    for (const query of [{ search: 'orde' }, { search: '' }])
      expect((await list(one, { ...query, cursor })).violations).toEqual(refused)
    expect((await list(one, { search: 'order', cursor: `${cursor}=` })).violations).toEqual(refused)
  })
})

let large: Promise<TestOrganization> | undefined
function largeOrganization(): Promise<TestOrganization> {
  return (large ??= gateway.apply({
    workflows: Array.from({ length: 101 }, (_, index) => named(`w${index}`, index)),
  }))
}
