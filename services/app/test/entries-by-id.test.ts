import { beforeAll, describe, expect, test } from '@jest/globals'
import type { AppOperationId } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { type TestPerson } from './support/test-app.ts'
import { useDataApp } from './support/data-fixtures.ts'

const data = useDataApp()
let sourceId: string
const seen = {} as Record<string, string>
const hidden = {} as Record<string, string>
const LISTS = ['listWorkflows', 'listRuns', 'listSessions', 'listDeliveries'] as const

beforeAll(async () => {
  sourceId = await data.saveSource()
  for (const [ids, userIds] of [
    [seen, null],
    [hidden, []],
  ] as const) {
    const workflowId = await data.createWorkflow('Book orders', userIds)
    const sessionId = newId()
    const runId = await data.createRun(workflowId, { sessionId })
    const delivery = await data.send(sourceId, runId)
    Object.assign(ids, {
      listWorkflows: workflowId,
      listRuns: runId,
      listSessions: sessionId,
      listDeliveries: delivery.id,
    })
  }
})

const read = async (person: TestPerson, list: AppOperationId, query: Record<string, string>) =>
  await data.call(person, list, { params: { source_id: sourceId }, query })

describe('Entries by their ids', () => {
  test.each(LISTS)('are those that the person sees, regardless of the filters: %s', async (list) => {
    const { admin, member } = data.app.organization
    const ids = [seen[list], hidden[list], newId()].join(',')
    const found = async (person: TestPerson) => {
      const { body } = await read(person, list, {
        ids,
        limit: '1',
        status: 'queued',
        state: 'closed',
        kind: 'verification',
      })
      const { data: rows, pagination } = body as { data: { id: string }[]; pagination: object }
      expect(pagination).toEqual({ has_more: false, next_cursor: null })
      return new Set(rows.map(({ id }) => id))
    }
    expect(await found(admin)).toEqual(new Set([seen[list], hidden[list]]))
    expect(await found(member)).toEqual(new Set([seen[list]]))
    expect(await found((await data.app.createOrganization()).owner)).toEqual(new Set())
  })

  test.each(LISTS)('are at most 100 complete ids: %s', async (list) => {
    const { admin } = data.app.organization
    const many = Array.from({ length: 101 }, newId)
    expect((await read(admin, list, { ids: many.slice(1).join(',') })).status).toBe(200)
    for (const ids of [many.join(','), '', 'ca440bfa', `${seen[list]},`]) {
      expect((await read(admin, list, { ids })).status).toBe(422)
    }
  })

  test('are of the log of their source', async () => {
    const { admin } = data.app.organization
    const call = { params: { source_id: await data.saveSource() }, query: { ids: seen['listDeliveries'] ?? '' } }
    expect((await data.call(admin, 'listDeliveries', call)).body.data).toEqual([])
  })
})
