import { describe, expect, test } from '@jest/globals'
import { decodeListCursor, encodeListCursor } from './list-cursor.ts'

const scope = { organizationId: '01890a5d-ac96-7ab2-80e2-4536629c90de', search: 'Straße' }
const position = { createdAt: new Date('2026-01-31T09:00:00.123Z'), id: '01890a5d-ac96-774b-bcce-b302099a8057' }

describe('list cursors', () => {
  test.each([
    '2026-01-31T09:00:00.123Z',
    '0001-01-01T00:00:00.000Z',
    '1969-12-31T23:59:59.999Z',
    '9999-12-31T23:59:59.999Z',
  ])('decode to the position that they were made from, at %s', (time) => {
    const encoded = { ...position, createdAt: new Date(time) }
    expect(decodeListCursor(encodeListCursor(encoded, scope), scope)).toEqual(encoded)
  })

  test('have 44 characters that need no encoding in a query', () => {
    expect(encodeListCursor(position, scope)).toMatch(/^[\w-]{44}$/)
  })

  test.each([
    ['another organization', { ...scope, organizationId: '01890a5d-ac96-7ab2-80e2-4536629c90df' }],
    ['another search', { ...scope, search: 'STRASSE' }],
    ['no search', { ...scope, search: '' }],
  ])('are not valid in the list of %s', (_what, other) => {
    expect(decodeListCursor(encodeListCursor(position, scope), other)).toBeUndefined()
  })

  test.each([
    '',
    'x',
    'A'.repeat(44),
    '🚀',
    `${encodeListCursor(position, scope)}=`,
    ` ${encodeListCursor(position, scope)}`,
  ])('cannot be decoded from %j', (text) => {
    expect(decodeListCursor(text, scope)).toBeUndefined()
  })
})
