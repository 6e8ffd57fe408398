import { hash } from 'node:crypto'
import { expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { byTime, decodeCursor, encodeCursor } from './list-cursors.ts'

const WORKFLOWS = byTime('workflows 01890a5d-ac96-7ab2-80e2-4536629c90de Straße')
const position = { createdAt: new Date('2026-01-31T09:00:00.123Z'), id: '01890a5d-ac96-774b-bcce-b302099a8057' }
const TEXT = `${position.createdAt.getTime()}.${position.id}`

test.each(['0001-01-01T00:00:00.000Z', '1969-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'])(
  'a cursor leads to the position that it was made from, at %s, and needs no encoding in a query',
  (time) => {
    const encoded = { ...position, createdAt: new Date(time) }
    const cursor = encodeCursor(WORKFLOWS, encoded)
    expect(cursor).toMatch(/^[\w-]{50,100}$/)
    expect(decodeCursor(WORKFLOWS, cursor)).toEqual(encoded)
    expect(decodeCursor(byTime('workflows 01890a5d-ac96-7ab2-80e2-4536629c90de STRASSE'), cursor)).toBeUndefined()
  },
)

test('a cursor with any change is refused', () => {
  const valid = encodeCursor(WORKFLOWS, position)
  const more = fc.oneof(fc.constantFrom('', '=', '+', 'A', 'b'), fc.string({ unit: 'binary', maxLength: 2 }))
  const changed = fc
    .tuple(fc.nat(valid.length), fc.nat(2), more)
    .map(([index, replaced, text]) => valid.slice(0, index) + text + valid.slice(index + replaced))
    .filter((text) => text !== valid)
  fc.assert(
    fc.property(fc.oneof(fc.string({ maxLength: 60 }), changed), (text) => {
      expect(decodeCursor(WORKFLOWS, text)).toBeUndefined()
    }),
    { seed: 2, numRuns: 500 },
  )
})

test('a cursor that a caller makes is refused or leads to a position that PostgreSQL can read, for any bytes', () => {
  const more = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.stringMatching(/^-?[0-9]{1,25}$/),
    fc.stringMatching(/^-?[0-9]{1,20}$/).map((time) => `${time}.${position.id}`),
  )
  let read = 0
  fc.assert(
    fc.property(fc.nat(TEXT.length), fc.nat(14), more, (index, replaced, text) => {
      const forged = TEXT.slice(0, index) + text + TEXT.slice(index + replaced)
      const digest = hash('sha256', `${WORKFLOWS.list} ${forged}`, 'base64url').slice(0, 11)
      const found = decodeCursor(WORKFLOWS, Buffer.from(digest + forged).toString('base64url'))
      if (!found) return
      read += 1
      expect(found.createdAt.toISOString()).toMatch(/^(?!0000)\d{4}-/)
      expect(found.id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    }),
    { seed: 1, numRuns: 1_000 },
  )
  expect(read).toBeGreaterThan(20)
})
