import { randomBytes } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { createSecretBox, type Database, newId, rotateSecrets, type SecretBox } from '../src/index.ts'

const key = (): string => randomBytes(32).toString('base64')
const [oldKey, newKey] = [key(), key()]
const oldBox = createSecretBox([oldKey])
const rotatingBox = createSecretBox([newKey, oldKey])
const newBox = createSecretBox([newKey])
const organizationId = newId()

const database = useTestDatabase({ maxConnections: 4 })
let db: Database

beforeAll(async () => {
  db = database.db
  await db.prisma.organization.create({ data: { id: organizationId, name: 'Acme' } })
}, 120_000)
beforeEach(async () => {
  await db.prisma.webhookSource.deleteMany()
})

async function addSource(box: SecretBox | null, secret: string): Promise<string> {
  const id = newId()
  const signingSecret = box && new Uint8Array(box.encrypt({ organizationId, sourceId: id }, secret))
  await db.prisma.webhookSource.create({
    data: {
      id,
      organizationId,
      name: id,
      nameKey: id,
      description: '',
      endpointUrl: 'https://hooks.example.com/',
      exampleRequestBody: {},
      signingSecret,
    },
  })
  return id
}

async function open(box: SecretBox, sourceId: string): Promise<string | null> {
  const { signingSecret } = await db.prisma.webhookSource.findUniqueOrThrow({ where: { id: sourceId } })
  return signingSecret && box.decrypt({ organizationId, sourceId }, signingSecret)
}

describe('rotateSecrets', () => {
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
      failed: [{ organizationId, sourceId: strange, reason: expect.stringContaining('SECRETS_KEY does not list') }],
    })
    expect(await open(newBox, good)).toBe('good')
  })

  test('does not overwrite a secret that is saved meanwhile', async () => {
    const id = await addSource(oldBox, 'before')
    const saved = new Uint8Array(oldBox.encrypt({ organizationId, sourceId: id }, 'saved meanwhile'))
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

  test('runs concurrently', async () => {
    const ids: string[] = []
    for (let index = 0; index < 20; index += 1) ids.push(await addSource(oldBox, `secret ${index}`))
    const results = await Promise.all([rotateSecrets(db, rotatingBox), rotateSecrets(db, rotatingBox)])
    expect(results.flatMap(({ failed }) => failed)).toEqual([])
    for (const [index, id] of ids.entries()) expect(await open(newBox, id)).toBe(`secret ${index}`)
  })
})
