import { describe, expect, test } from '@jest/globals'
import { type AppOperationId } from '@workflow-service/contract'
import { APP_OPERATIONS } from '@workflow-service/contract/app'
import { newId } from '@workflow-service/database'
import { type AppCall, useTestApp } from './support/test-app.ts'

const app = useTestApp()

const ID = '01a1fd4e-f109-7ab0-9050-44d23f55f995'
const encode = (text: string | Buffer) => Buffer.from(text).toString('base64url')
/** Valid positions of every list, and what is none. */
const POSITIONS = {
  workflows: `1700000000000.${ID}`,
  runs: `1700000000000.${ID}`,
  audit: ID,
  users: 'a@b.c',
  session: '5',
}
const CRAFTED = [
  'x',
  '%00',
  encode(ID),
  encode(`1700000000000.${ID}`),
  encode('5'),
  encode('a@b.c'),
  encode(Buffer.from([0xff, 0xfe, 0])),
  ...Object.keys(POSITIONS).flatMap((list) => [encode(list), encode(`${list} `), encode(`${list} \0`)]),
  ...['runs', 'workflows', 'sessions', 'api_keys', 'deliveries'].map((list) => encode(`${list} 999999999999999.${ID}`)),
  encode(`audit ${ID}'`),
  encode('session -1'),
  'a'.repeat(513),
]
const lists = (Object.keys(APP_OPERATIONS) as AppOperationId[])
  .filter((id) => JSON.stringify(APP_OPERATIONS[id]).includes('"cursor":'))
  .map((id): [AppOperationId, AppCall] => [id, { params: { source_id: newId() } }])
const all: [string, AppOperationId, AppCall][] = [
  ...lists.map(([id, call]): [string, AppOperationId, AppCall] => [id, id, call]),
  ['listRuns of a session', 'listRuns', { query: { session_id: newId() } }],
]

describe('A cursor', () => {
  test('is a parameter of these lists', () => {
    expect(all.map(([name]) => name).toSorted()).toEqual([
      'listApiKeys',
      'listAuditEvents',
      'listDeliveries',
      'listRuns',
      'listRuns of a session',
      'listSessions',
      'listUsers',
      'listWorkflows',
    ])
  })

  test.each(all)('that is crafted is refused: %s', async (_name, id, call) => {
    for (const cursor of CRAFTED) {
      const { status, error } = await app.call(app.organization.owner, id, {
        ...call,
        query: { ...call.query, cursor },
      })
      expect([cursor, status, error?.details?.map(({ field }) => field)]).toEqual([cursor, 422, ['cursor']])
    }
  })

  test.each(all)('of another list is refused: %s', async (_name, id, call) => {
    const answers: number[] = []
    for (const [list, position] of Object.entries(POSITIONS)) {
      const query = { ...call.query, cursor: encode(`${list} ${position}`) }
      answers.push((await app.call(app.organization.owner, id, { ...call, query })).status)
    }
    expect(answers.filter((status) => status !== 422).length).toBeLessThanOrEqual(1)
  })
})
