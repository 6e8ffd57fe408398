import { expect, test } from '@jest/globals'
import { ApiError } from '@workflow-service/service-kit'
import * as fc from 'fast-check'
import { answerPage, BY_EMAIL, BY_ID, BY_NUMBER, byTime, type CursorFormat } from './paging.ts'

const ID = '01a1fd4e-f109-7ab0-9050-44d23f55f995'
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

interface List {
  /** A position of the list, as its cursors have it. */
  text: string
  /** Whether PostgreSQL can read the position of the cursor; undefined if the cursor is refused. */
  isReadable(cursor: string): Promise<boolean | undefined>
}

function createList<Position>(
  text: string,
  format: CursorFormat<Position>,
  isReadable: (position: Position) => boolean,
): List {
  return {
    text,
    isReadable: async (cursor) => {
      let found: Position | undefined
      try {
        await answerPage<never, Position>({ cursor }, format, async ({ after }) => {
          found = after
          return { rows: [], next: undefined }
        })
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 422) throw error
        return undefined
      }
      return found !== undefined && isReadable(found)
    },
  }
}

const LISTS = [
  createList(
    `runs 1700000000000.${ID}`,
    byTime('runs'),
    ({ createdAt, id }) => /^\d{4}-/.test(createdAt.toISOString()) && UUID.test(id),
  ),
  createList('session 5', BY_NUMBER, ({ number }) => Number.isSafeInteger(number) && number >= 0),
  createList(`audit ${ID}`, BY_ID, (id) => UUID.test(id)),
  createList('users a@b.c', BY_EMAIL, (email) => email !== '' && email.isWellFormed() && !email.includes('\0')),
]

test('a cursor is refused or leads to a position that PostgreSQL can read, for any bytes', async () => {
  const more = fc.oneof(
    fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
    fc.stringMatching(/^[0-9A-Za-z]$/),
    fc.stringMatching(/^[0-9]{1,25}$/),
    fc.stringMatching(/^[0-9]{1,20}$/).map((time) => `${time}.${ID}`),
  )
  const changed = fc.tuple(fc.constantFrom(...LISTS), fc.nat(60), fc.nat(2), more)
  const read = new Set<List>()
  await fc.assert(
    fc.asyncProperty(changed, async ([list, index, replaced, text]) => {
      const plain = Buffer.from(list.text.slice(0, index) + text + list.text.slice(index + replaced), 'latin1')
      const isReadable = await list.isReadable(plain.toString('base64url'))
      expect([plain.toString(), isReadable]).not.toEqual([plain.toString(), false])
      if (isReadable) read.add(list)
    }),
    { seed: 1, numRuns: 1_000 },
  )
  expect(read.size).toBe(LISTS.length)
})
