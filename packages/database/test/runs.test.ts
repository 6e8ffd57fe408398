import { randomBytes } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import {
  appendSteps,
  serializeStep,
  finishRuns,
  listEarlierRuns,
  readSessionSummary,
  listWorkflowFiles,
  newId,
  readWorkflowFile,
  acquireSessions,
} from '../src/index.ts'
import { ACQUIRE_ALL, createStartable, start, useStartable } from './support/start-fixtures.ts'

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

/** A run with its one step. */
const small = (number: number) => [number, 1, false]

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

  test('reads no journal of more than 4 MiB, and none that is beyond 8 MiB in all, compressed or not', async () => {
    const { sessionId } = await start(acme.db, acme)
    for (let n = 0; n < 5; n++) await start(acme.db, acme, sessionId)
    await runAll(sessionId, [null, null, null, null, null, null])
    const list = async () => {
      const runs = await listEarlierRuns(acme.db, acme.organizationId, { sessionId, number: 7, limit: 6 })
      return runs.map(({ number, steps, isTooLarge = false }) => [number, steps.length, isTooLarge])
    }
    expect(await list()).toEqual([1, 2, 3, 4, 5, 6].map(small))
    const runs = await acme.db.prisma.start.findMany({ where: { sessionId }, orderBy: { number: 'asc' } })
    const add = async (number: number, mebibytes: number, text = 'x'.repeat(mebibytes * 1_048_576)) => {
      await acme.db.pool.query(
        `INSERT INTO run_steps (run_id, position, kind, data, epoch)
         VALUES ($1, 9, 'note', json_build_object('code', 'large', 'text', $2::text), 1)`,
        [runs[number - 1]!.id, text],
      )
    }
    await add(5, 5)
    expect(await list()).toEqual([1, 2, 3, 4].map(small).concat([[5, 0, true], small(6)]))
    await add(6, 3)
    await add(4, 3, randomBytes((3 * 1_048_576 * 3) / 4).toString('base64'))
    await add(2, 3)
    expect(await list()).toEqual([[1, 0, true], [2, 0, true], small(3), [4, 2, false], [5, 0, true], [6, 2, false]])
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
