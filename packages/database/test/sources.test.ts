import { randomBytes } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { createSecretBox, type Database, newId, rotateSecrets, searchSources, type SecretBox } from '../src/index.ts'
import { createStartable } from './support/start-fixtures.ts'

const key = (): string => randomBytes(32).toString('base64')
const [oldKey, newKey] = [key(), key()]
const oldBox = createSecretBox([oldKey])
const rotatingBox = createSecretBox([newKey, oldKey])
const newBox = createSecretBox([newKey])

const database = useTestDatabase({ maxConnections: 4 })
let db: Database
let organizationId: string
let otherId: string

beforeAll(async () => {
  db = database.db
  organizationId = (await createStartable(db)).organizationId
  otherId = (await createStartable(db)).organizationId
})

async function createSource(
  name: string,
  columns: {
    id?: string
    description?: string
    deletedAt?: Date
    organizationId?: string
    signingSecret?: Uint8Array<ArrayBuffer>
  } = {},
): Promise<void> {
  const endpointUrl = 'https://acme.example/orders'
  const source = { id: newId(), organizationId, name, nameKey: name.toLowerCase(), description: '', endpointUrl }
  await db.prisma.webhookSource.create({ data: { ...source, exampleRequestBody: {}, ...columns } })
}

async function addSource(box: SecretBox | null, secret: string): Promise<string> {
  const id = newId()
  const signingSecret = box && new Uint8Array(box.encrypt({ organizationId, id }, secret))
  await createSource(id, { id, ...(signingSecret && { signingSecret }) })
  return id
}

async function open(box: SecretBox, sourceId: string): Promise<string | null> {
  const { signingSecret } = await db.prisma.webhookSource.findUniqueOrThrow({ where: { id: sourceId } })
  return signingSecret && box.decrypt({ organizationId, id: sourceId }, signingSecret)
}

describe('rotateSecrets', () => {
  beforeEach(async () => {
    await db.prisma.webhookSource.deleteMany()
  })

  test('makes every secret readable with only the new key, over several pages', async () => {
    const ids: string[] = []
    for (let index = 0; index < 7; index += 1) ids.push(await addSource(oldBox, `secret ${index}`))
    const plain = await addSource(null, '')
    expect(await rotateSecrets(db, rotatingBox, { batchSize: 3 })).toEqual({ rotated: 7, current: 0, failed: [] })
    for (const [index, id] of ids.entries()) expect(await open(newBox, id)).toBe(`secret ${index}`)
    expect(await open(newBox, plain)).toBeNull()
  })

  test('reports secrets that no listed key decrypts, and continues with the others', async () => {
    const strange = await addSource(createSecretBox([key()]), 'lost')
    const good = await addSource(oldBox, 'good')
    expect(await rotateSecrets(db, rotatingBox)).toEqual({
      rotated: 1,
      current: 0,
      failed: [
        {
          kind: 'webhook_source',
          organizationId,
          id: strange,
          reason: expect.stringContaining('SECRETS_KEY does not list'),
        },
      ],
    })
    expect(await open(newBox, good)).toBe('good')
  })

  test('does not overwrite a secret that is saved meanwhile', async () => {
    const id = await addSource(oldBox, 'before')
    const saved = new Uint8Array(oldBox.encrypt({ organizationId, id }, 'saved meanwhile'))
    // The save comes between the rotation's read and its write: they go through a pool that saves first.
    const pool = new Proxy(db.pool, {
      get: (target, name) =>
        name === 'query'
          ? async (text: string, values: unknown[]) => {
              if (text.startsWith('UPDATE')) {
                await db.prisma.webhookSource.update({ where: { id }, data: { signingSecret: saved } })
              }
              return target.query(text, values)
            }
          : Reflect.get(target, name),
    })
    expect(await rotateSecrets({ pool }, rotatingBox)).toEqual({ rotated: 0, current: 0, failed: [] })
    expect(await open(rotatingBox, id)).toBe('saved meanwhile')
    expect(await rotateSecrets(db, rotatingBox)).toMatchObject({ rotated: 1 })
    expect(await open(newBox, id)).toBe('saved meanwhile')
  })
})

const search = async (words: string[], limit = 10) =>
  (await searchSources(db, organizationId, words, limit)).map(({ name }) => name)

describe('searchSources', () => {
  beforeAll(async () => {
    await createSource('Order intake', { description: 'Takes new ORDERS.' })
    await createSource('Äpfel ÉTÉ', { description: 'Straße 7' })
    await createSource('100%_sure', { description: 'It\'s a \\ "test" of [a-z]+ and 中文' })
    await createSource('Order archive', { description: `${'x'.repeat(5_000)} end` })
    await createSource('Order of another organization', { organizationId: otherId })
    await createSource('Order deleted', { deletedAt: new Date() })
    for (let n = 0; n < 30; n += 1) await createSource(`Ledger ${n}`, { description: 'books' })
  })

  test('finds only sources of the organization that are not deleted, those with most of the words first', async () => {
    expect(await search(['order'])).toEqual(['Order archive', 'Order intake'])
    expect(await search(['order', 'takes'])).toEqual(['Order intake', 'Order archive'])
    expect(await search(['another'])).toEqual([])
    expect(await search(['nothing'])).toEqual([])
    expect(await search([])).toEqual([])
  })

  test('finds so many sources at most, each with the first 1,000 characters of its description', async () => {
    expect(await search(['ledger', 'books'], 7)).toHaveLength(7)
    const found = await searchSources(db, organizationId, ['archive'], 1)
    expect(found.map(({ description }) => description)).toEqual(['x'.repeat(1_000)])
    expect(await search(['end'])).toEqual(['Order archive'])
  })

  test('ignores the case of all letters, and reads no character as a pattern', async () => {
    for (const word of ['äpfel', 'été', 'straße']) expect(await search([word])).toEqual(['Äpfel ÉTÉ'])
    for (const word of ['100%_', "it's", '\\', '"test"', '[a-z]+', '中文']) {
      expect(await search([word])).toEqual(['100%_sure'])
    }
    for (const word of ['1%sure', 'or_er', '.*', "' OR '1'='1"]) expect(await search([word])).toEqual([])
  })
})
