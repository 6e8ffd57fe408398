import { beforeAll, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { newId, searchSources } from '../src/index.ts'
import { createStartable } from './support/start-fixtures.ts'

const database = useTestDatabase()
let organizationId: string
let otherId: string

async function createSource(name: string, description = '', columns: { deletedAt?: Date; owner?: string } = {}) {
  const { owner = organizationId, ...rest } = columns
  const endpointUrl = 'https://acme.example/orders'
  const source = { id: newId(), organizationId: owner, name, nameKey: name.toLowerCase(), description, endpointUrl }
  await database.db.prisma.webhookSource.create({ data: { ...source, exampleRequestBody: {}, ...rest } })
}

const search = async (words: string[], limit = 10) =>
  (await searchSources(database.db, organizationId, words, limit)).map(({ name }) => name)

beforeAll(async () => {
  organizationId = (await createStartable(database.db)).organizationId
  otherId = (await createStartable(database.db)).organizationId
  await createSource('Order intake', 'Takes new ORDERS.')
  await createSource('Äpfel ÉTÉ', 'Straße 7')
  await createSource('100%_sure', 'It\'s a \\ "test" of [a-z]+ and 中文')
  await createSource('Order archive', `${'x'.repeat(5_000)} end`)
  await createSource('Order of another organization', '', { owner: otherId })
  await createSource('Order deleted', '', { deletedAt: new Date() })
  for (let n = 0; n < 30; n += 1) await createSource(`Ledger ${n}`, 'books')
})

test('a search finds only sources of the organization that are not deleted, those with most of the words first', async () => {
  expect(await search(['order'])).toEqual(['Order archive', 'Order intake'])
  expect(await search(['order', 'takes'])).toEqual(['Order intake', 'Order archive'])
  expect(await search(['another'])).toEqual([])
  expect(await search(['nothing'])).toEqual([])
  expect(await search([])).toEqual([])
})

test('a search finds so many sources at most, each with the first 1,000 characters of its description', async () => {
  expect(await search(['ledger', 'books'], 7)).toHaveLength(7)
  const found = await searchSources(database.db, organizationId, ['archive'], 1)
  expect(found.map(({ description }) => description)).toEqual(['x'.repeat(1_000)])
  expect(await search(['end'])).toEqual(['Order archive'])
})

test('a search ignores the case of all letters, and reads no character as a pattern', async () => {
  for (const word of ['äpfel', 'été', 'straße']) expect(await search([word])).toEqual(['Äpfel ÉTÉ'])
  for (const word of ['100%_', "it's", '\\', '"test"', '[a-z]+', '中文']) {
    expect(await search([word])).toEqual(['100%_sure'])
  }
  for (const word of ['1%sure', 'or_er', '.*', "' OR '1'='1"]) expect(await search([word])).toEqual([])
})
