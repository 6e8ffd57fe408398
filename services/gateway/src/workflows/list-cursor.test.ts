import { describe, expect, test } from '@jest/globals'
import { decodeListCursor, encodeListCursor } from './list-cursor.ts'

const listed = { organizationId: '01890a5d-ac96-7ab2-80e2-4536629c90de', search: 'Straße' }
const position = { createdAt: new Date('2026-01-31T09:00:00.123Z'), id: '01890a5d-ac96-774b-bcce-b302099a8057' }

describe('list cursors', () => {
  test.each([
    '2026-01-31T09:00:00.123Z',
    '0001-01-01T00:00:00.000Z',
    '1969-12-31T23:59:59.999Z',
    '9999-12-31T23:59:59.999Z',
  ])('come back as the place that they were made from, at %s', (time) => {
    const place = { ...position, createdAt: new Date(time) }
    expect(decodeListCursor(encodeListCursor(place, listed), listed)).toEqual(place)
  })

  test('are short and need no encoding in a query', () => {
    expect(encodeListCursor(position, listed)).toMatch(/^[\w-]{44}$/)
  })

  test.each([
    ['another organization', { ...listed, organizationId: '01890a5d-ac96-7ab2-80e2-4536629c90df' }],
    ['another search', { ...listed, search: 'STRASSE' }],
    ['no search', { ...listed, search: '' }],
  ])('are none in the list of %s', (_what, other) => {
    expect(decodeListCursor(encodeListCursor(position, listed), other)).toBeUndefined()
  })

  test.each([
    '',
    'x',
    'A'.repeat(44),
    '🚀',
    `${encodeListCursor(position, listed)}=`,
    ` ${encodeListCursor(position, listed)}`,
  ])('are not read out of %j', (text) => {
    expect(decodeListCursor(text, listed)).toBeUndefined()
  })
})
