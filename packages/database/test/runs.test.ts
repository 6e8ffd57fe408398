import { describe, expect, test } from '@jest/globals'
import {
  appendSteps,
  serializeStep,
  finishRuns,
  listEarlierRuns,
  readSessionSummary,
  listRuns,
  listWorkflowFiles,
  newId,
  readWorkflowFile,
  showRun,
  acquireSessions,
} from '../src/index.ts'
import { ACQUIRE_ALL, createStartable, listWrongEnds, start, useStartable } from './support/start-fixtures.ts'

const acme = useStartable()

/** Runs the starts of a session one after the other, each with one step. */
async function runAll(sessionId: string, results: (string | null)[]): Promise<void> {
  const {
    sessions: [acquired],
  } = await acquireSessions(acme.db, ACQUIRE_ALL, [sessionId])
  const { lease } = acquired!
  let run = acquired?.run
  for (const error of results) {
    const steps = [serializeStep({ kind: 'message', data: { agent: 'test', text: `run ${run!.number}` } })]
    await appendSteps(acme.db, 'a', [{ lease, runId: run!.id, position: 0, steps }])
    const status = error === null ? 'succeeded' : 'failed'
    const [ended] = await finishRuns(acme.db, 'a', [
      { lease, number: run!.number, status, error, shouldClaimNext: true },
    ])
    run = ended?.kind === 'finished' ? ended.next : undefined
  }
}

describe('listRuns', () => {
  test('lists the newest first, and by status, workflow, session and time', async () => {
    const one = await start(acme.db, acme)
    const two = await start(acme.db, acme, one.sessionId)
    const three = await start(acme.db, acme)
    await runAll(one.sessionId, [null, 'model_refused: it said no'])
    const ids = async (filter: Partial<Parameters<typeof listRuns>[2]>) =>
      (await listRuns(acme.db, acme.organizationId, { limit: 10, ...filter })).map(({ id }) => id)
    expect(await ids({})).toEqual([three.startId, two.startId, one.startId])
    expect(await ids({ limit: 1 })).toEqual([three.startId])
    expect(await ids({ status: 'failed' })).toEqual([two.startId])
    expect(await ids({ sessionId: one.sessionId })).toEqual([two.startId, one.startId])
    expect(await ids({ workflowId: newId() })).toEqual([])
    const [, second] = await listRuns(acme.db, acme.organizationId, { limit: 10 })
    expect(second).toEqual({
      id: two.startId,
      workflow_id: acme.workflowId,
      session_id: one.sessionId,
      status: 'failed',
      attempts: 1,
      error: 'model_refused: it said no',
      created_at: expect.any(Date),
      started_at: expect.any(Date),
      finished_at: expect.any(Date),
    })
    expect(await ids({ since: second!.created_at, until: new Date(second!.created_at.getTime() + 1) })).toContain(
      two.startId,
    )
    expect(await ids({ until: new Date(0) })).toEqual([])
    expect(await listWrongEnds(acme.db)).toEqual([])
  })

  test("shows nothing of another organization's", async () => {
    const other = await createStartable(acme.db)
    await start(acme.db, acme)
    expect(await listRuns(acme.db, other.organizationId, { limit: 10 })).toEqual([])
  })
})

describe('showRun', () => {
  test('returns the start, the journal and the deliveries', async () => {
    const { startId, sessionId } = await start(acme.db, acme)
    await runAll(sessionId, [null])
    await acme.db.pool.query(
      `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, status, request_body, run_id, finished_at)
       VALUES ($1, $2, $3, 'payload', 'accepted', 204, '{}', $4, now())`,
      [newId(), acme.organizationId, newId(), startId],
    )
    expect(await showRun(acme.db, startId)).toMatchObject({
      id: startId,
      organization_id: acme.organizationId,
      workflow_name: 'Forward orders',
      status: 'succeeded',
      number: 1,
      origin: 'api',
      context: 'order_id: A-1',
      input_message: 'New order',
      request_id: 'request-1',
      steps: [{ kind: 'message', position: 0, data: { text: 'run 1' } }],
      deliveries: [{ outcome: 'accepted', status: 204, source_name: null }],
    })
  })

  test('resolves to null for a run that does not exist', async () => {
    expect(await showRun(acme.db, newId())).toBeNull()
  })
})

describe('listEarlierRuns', () => {
  test('returns the newest runs before this one, oldest first, with their journals', async () => {
    const { sessionId } = await start(acme.db, acme)
    for (let n = 0; n < 3; n++) await start(acme.db, acme, sessionId)
    await runAll(sessionId, [null, 'no: reason', null])
    const earlier = await listEarlierRuns(acme.db, acme.organizationId, { sessionId, number: 4, limit: 2 })
    expect(earlier).toMatchObject([
      { status: 'failed', error: 'no: reason', steps: [{ data: { text: 'run 2' } }] },
      { status: 'succeeded', error: null, steps: [{ data: { text: 'run 3' } }], workflowName: 'Forward orders' },
    ])
    expect(await listEarlierRuns(acme.db, acme.organizationId, { sessionId, number: 1, limit: 2 })).toEqual([])

    const runs = await acme.db.prisma.start.findMany({ where: { sessionId }, orderBy: { number: 'asc' } })
    for (const [index, text] of ['Old.', 'New.', ''].entries()) {
      const step = { runId: runs[index]!.id, position: 9, epoch: 1, kind: 'session_summary' }
      await acme.db.prisma.runStep.create({ data: { ...step, data: { turn: 0, through: 1, text } } })
    }
    const read = (number: number) => readSessionSummary(acme.db, acme.organizationId, { sessionId, number })
    expect([await read(4), await read(2), await read(1)]).toMatchObject([{ text: 'New.' }, { text: 'Old.' }, undefined])
  })
})

describe('files', () => {
  test('are listed by folder, then by name, and read only by their own workflow', async () => {
    const other = await createStartable(acme.db)
    const create = async (path: string[], name: string) => {
      const id = newId()
      await acme.db.prisma.file.create({
        data: { id, workflowId: acme.workflowId, path, name, content: `content of ${name}` },
      })
      return id
    }
    const deep = await create(['docs', 'more'], 'a.md')
    const doc = await create(['docs'], 'b.md')
    const root = await create([], 'z.md')
    const files = await listWorkflowFiles(acme.db, acme.organizationId, acme.workflowId)
    expect(files).toEqual([
      { id: root, name: 'z.md', path: [] },
      { id: doc, name: 'b.md', path: ['docs'] },
      { id: deep, name: 'a.md', path: ['docs', 'more'] },
    ])
    expect(await readWorkflowFile(acme.db, acme.organizationId, acme.workflowId, doc)).toBe('content of b.md')
    expect(await readWorkflowFile(acme.db, acme.organizationId, other.workflowId, doc)).toBeUndefined()
    expect(await readWorkflowFile(acme.db, other.organizationId, acme.workflowId, doc)).toBeUndefined()
  })
})
