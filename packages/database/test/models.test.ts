import { setTimeout as delay } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import {
  type CostRequest,
  listModels,
  newId,
  recordModelLimit,
  recordModels,
  reserveCost,
  reserveModelSlot,
  settleCost,
  deleteOldSpending,
  wakeSpentSessions,
} from '../src/index.ts'

const database = useTestDatabase({ maxConnections: 20 })
let organizationId: string
let workflowId: string

beforeEach(async () => {
  ;[organizationId, workflowId] = [newId(), newId()]
  await database.db.prisma.organization.create({ data: { id: organizationId, name: 'Acme', monthBudget: 1_000 } })
  await createWorkflow(workflowId)
})

async function createWorkflow(id: string, data: { dayBudget?: number; runBudget?: number; whenSpent?: string } = {}) {
  const values = { name: 'Orders', description: '', scope: 'company_wide', searchText: '', isActive: true }
  await database.db.prisma.workflow.create({ data: { id, organizationId, ...values, ...data } })
}

function request(changes: Partial<CostRequest> = {}): CostRequest {
  return {
    organizationId,
    workflowId,
    runId: newId(),
    turn: 1,
    amount: 100,
    runSpent: 0,
    expiresInMs: 60_000,
    ...changes,
  }
}

/** Asks for one answer as a runner does: waits for requests under way. Resolves to whether it was given. */
async function ask(cost: number, changes: Partial<CostRequest> = {}): Promise<boolean> {
  const asked = request(changes)
  for (;;) {
    const { kind } = await reserveCost(database.db, asked)
    if (kind === 'exceeded') return false
    if (kind === 'busy') {
      await delay(25)
      continue
    }
    await settleCost(database.db, { ...asked, cost })
    return true
  }
}

async function readSpent(): Promise<Record<string, number>> {
  const { rows } = await database.db.pool.query<{ id: string; spent: number }>(
    'SELECT workflow_id AS id, spent::int FROM model_spending WHERE organization_id = $1',
    [organizationId],
  )
  return Object.fromEntries(rows.map(({ id, spent }) => [id === workflowId ? 'day' : id, spent]))
}

const MONTH = '00000000-0000-0000-0000-000000000000'

describe('the budgets of models', () => {
  test('are not exceeded by more than one answer, however many runs ask at once', async () => {
    const other = newId()
    await createWorkflow(other)
    const runs = 16
    await database.db.prisma.organization.update({ where: { id: organizationId }, data: { monthBudget: 30 * runs } })
    const given: boolean[] = []
    let next = 0
    const worker = async (): Promise<void> => {
      while (next < runs) given.push(await ask(70, { workflowId: next++ % 2 === 0 ? workflowId : other }))
    }
    await Promise.all(Array.from({ length: 24 }, worker))
    const spent = 70 * given.filter(Boolean).length
    expect(given).toHaveLength(runs)
    expect(spent).toBeGreaterThanOrEqual(30 * runs)
    expect(spent).toBeLessThan(30 * runs + 70)
    const { [MONTH]: month, day, [other]: otherDay } = await readSpent()
    expect([month, (day ?? 0) + (otherDay ?? 0)]).toEqual([spent, spent])
    const reserved = 'SELECT FROM model_reservations WHERE organization_id = $1'
    expect((await database.db.pool.query(reserved, [organizationId])).rowCount).toBe(0)
  })

  test('of a run are not used up by a summary of its session', async () => {
    await createWorkflow((workflowId = newId()), { runBudget: 300 })
    const summary = (amount: number) => reserveCost(database.db, request({ turn: 0, amount, runSpent: 100 }))
    expect(await summary(100)).toEqual({ kind: 'reserved' })
    expect(await summary(101)).toMatchObject({ kind: 'exceeded', scope: 'run' })
    expect(await reserveCost(database.db, request({ amount: 101, runSpent: 100 }))).toEqual({ kind: 'reserved' })
  })

  test('count what requests under way may cost, until they end', async () => {
    await createWorkflow((workflowId = newId()), { dayBudget: 150 })
    const [first, second] = [request(), request()]
    expect(await reserveCost(database.db, first)).toEqual({ kind: 'reserved' })
    expect(await reserveCost(database.db, second)).toEqual({ kind: 'reserved' })
    expect(await reserveCost(database.db, request())).toEqual({ kind: 'busy' })
    await settleCost(database.db, { ...first, cost: 60 })
    await settleCost(database.db, { ...first, cost: 60 })
    await settleCost(database.db, { ...second, cost: 0 })
    expect(await readSpent()).toEqual({ [MONTH]: 60, day: 60 })
    await ask(90)
    const exceeded = { kind: 'exceeded', scope: 'day', budget: 150, spent: 150, waitMs: null }
    expect(await reserveCost(database.db, request())).toEqual(exceeded)
  })

  test('release what a runner reserved that was killed, and count an answer that it wrote', async () => {
    const data = { status: 'running', startedAt: new Date(), number: 1, origin: 'api', context: '', requestId: 'r' }
    const [run, sessionId] = [request({ amount: 2_000 }), newId()]
    await database.db.prisma.session.create({ data: { id: sessionId, organizationId } })
    const id = run.runId
    await database.db.prisma.start.create({ data: { id, organizationId, workflowId, sessionId, ...data } })
    await reserveCost(database.db, run)
    expect(await reserveCost(database.db, request())).toEqual({ kind: 'busy' })
    // The next runner of the run asks again.
    expect(await reserveCost(database.db, { ...run, amount: 500 })).toEqual({ kind: 'reserved' })
    const answer = { turn: 1, cost_micros: 300 }
    await database.db.prisma.runStep.create({
      data: { runId: id, position: 0, kind: 'model_answer', data: answer, epoch: 1 },
    })
    expect(await reserveCost(database.db, { ...run, turn: 2 })).toEqual({ kind: 'reserved' })
    expect(await readSpent()).toEqual({ [MONTH]: 300, day: 300 })
    // It is cancelled while it asks.
    expect(await reserveCost(database.db, { ...run, turn: 2, amount: 5_000 })).toEqual({ kind: 'reserved' })
    expect(await reserveCost(database.db, request())).toEqual({ kind: 'busy' })
    const ended = { status: 'cancelled', finishedAt: new Date() }
    await database.db.prisma.start.update({ where: { id }, data: ended })
    expect(await reserveCost(database.db, request())).toEqual({ kind: 'reserved' })
    // No runner takes the run again.
    await database.db.prisma.start.update({ where: { id }, data: { status: 'running', finishedAt: null } })
    await reserveCost(database.db, { ...run, turn: 2, amount: 5_000, expiresInMs: -1 })
    expect(await reserveCost(database.db, request())).toEqual({ kind: 'reserved' })
    expect(await readSpent()).toEqual({ [MONTH]: 300, day: 300 })
  })

  test('count an answer that could not be written before its reservation had expired, as in an outage', async () => {
    const data = { status: 'running', startedAt: new Date(), number: 1, origin: 'api', context: '', requestId: 'r' }
    const [run, sessionId] = [request({ amount: 2_000, expiresInMs: -1 }), newId()]
    await database.db.prisma.session.create({ data: { id: sessionId, organizationId } })
    await database.db.prisma.start.create({ data: { id: run.runId, organizationId, workflowId, sessionId, ...data } })
    const trial = request({ amount: 2_000, expiresInMs: -1 })
    for (const late of [run, trial]) expect(await reserveCost(database.db, late)).toEqual({ kind: 'reserved' })
    for (let others = 0; others < 2; others += 1) expect(await ask(0)).toBe(true)
    for (const late of [run, run, trial]) await settleCost(database.db, { ...late, cost: 300 })
    expect(await readSpent()).toEqual({ [MONTH]: 600, day: 600 })
    const reserved = 'SELECT FROM model_reservations WHERE organization_id = $1'
    expect((await database.db.pool.query(reserved, [organizationId])).rowCount).toBe(0)
  })

  test('wake the runs that wait for them, and no others, when they are saved', async () => {
    const { prisma } = database.db
    await createWorkflow((workflowId = newId()))
    const later = new Date(Date.now() + 600_000)
    const park = async (code: string, change: object = {}) => {
      const [sessionId, id] = [newId(), newId()]
      const waiting = { lastStartNumber: 1, waitingSince: later, ...change }
      await prisma.session.create({ data: { id: sessionId, organizationId, ...waiting } })
      const run = { organizationId, workflowId, sessionId, number: 1, origin: 'api', context: 'x', requestId: 'r' }
      await prisma.start.create({ data: { id, status: 'queued', ...run } })
      const note = { kind: 'note', data: { code, text: '' }, epoch: 1, position: 0 }
      await prisma.runStep.create({ data: { runId: id, ...note } })
      return sessionId
    }
    const sessions = [
      await park('budget_spent'),
      await park('run_parked'),
      await park('budget_spent', { lastFinishedNumber: 1 }),
    ]
    const areWoken = async () => {
      const rows = await prisma.session.findMany({ where: { id: { in: sessions } } })
      return sessions.map((id) => rows.find((row) => row.id === id)!.waitingSince! < later)
    }
    await wakeSpentSessions(database.db, organizationId, newId())
    expect(await areWoken()).toEqual([false, false, false])
    await wakeSpentSessions(database.db, organizationId, workflowId)
    expect(await areWoken()).toEqual([true, false, false])
    await prisma.start.deleteMany({ where: { workflowId } })
    await prisma.session.deleteMany({ where: { id: { in: sessions } } })
  })

  test('of long ago are deleted, those of the last days are not', async () => {
    await createWorkflow((workflowId = newId()))
    await database.db.pool.query(
      `INSERT INTO model_spending (organization_id, workflow_id, period, spent)
       SELECT $1, $2, current_date - days, 1 FROM unnest(ARRAY[401, 399]) AS days`,
      [organizationId, workflowId],
    )
    expect(await deleteOldSpending(database.db, { olderThanDays: 400, batchSize: 10 })).toBe(1)
    const rest = 'DELETE FROM model_spending WHERE workflow_id = $1'
    expect((await database.db.pool.query(rest, [workflowId])).rowCount).toBe(1)
  })

  test('let a run wait for the next day or month if its workflow says so, but not for the budget of a run', async () => {
    await createWorkflow((workflowId = newId()), { dayBudget: 50, runBudget: 40, whenSpent: 'wait' })
    const ofRun = await reserveCost(database.db, request({ runSpent: 40 }))
    expect(ofRun).toEqual({ kind: 'exceeded', scope: 'run', budget: 40, spent: 40, waitMs: null })
    await ask(50)
    const ofDay = await reserveCost(database.db, request())
    expect(ofDay).toMatchObject({ kind: 'exceeded', scope: 'day' })
    const waitMs = ofDay.kind === 'exceeded' ? ofDay.waitMs! : 0
    expect(waitMs).toBeGreaterThan(0)
    expect(waitMs).toBeLessThanOrEqual(86_400_000)
  })

  test('are noted in the audit log once, when 80 % are spent', async () => {
    const asked = [790, 20, 20].map((cost) => ({ ...request(), cost }))
    const noted = []
    for (const each of asked) {
      await reserveCost(database.db, each)
      noted.push(await settleCost(database.db, each))
    }
    expect(noted).toEqual([[], [{ scope: 'month', budget: 1_000, spent: 810, name: 'Acme' }], []])
    const events = await database.db.prisma.auditEvent.findMany({ where: { organizationId } })
    expect(events).toMatchObject([
      { action: 'budget.nearly_spent', targetName: 'Acme', changes: [{ field: 'month_budget', old: 1_000, new: 810 }] },
    ])
  })
})

test('the models that runners offer are those of the last one, to the organizations that may use them', async () => {
  const model = {
    is_default: false,
    data_region: null,
    currency: null,
    fallback: null as string | null,
    organization_ids: [],
    reads: [],
  }
  await recordModels(database.db, [{ ...model, name: 'old', model: 'openai:old' }])
  const offered = ['fast', 'others', 'slow'].map((name) => ({ ...model, name, model: `openai:${name}` }))
  offered[0]!.fallback = 'others'
  offered[1] = { ...offered[1]!, fallback: 'slow', organization_ids: [newId()] as never }
  await Promise.all([1, 2, 3].map(() => recordModels(database.db, offered)))
  await database.db.prisma.organization.update({ where: { id: organizationId }, data: { offeredModels: ['slow'] } })
  expect(await listModels(database.db, organizationId)).toMatchObject([
    { name: 'fast', is_offered: false, fallback: 'slow' },
    { name: 'slow', is_offered: true, fallback: null },
  ])
})

const reserve = (maxDelayMs = 30_000, isRepeated = false) =>
  reserveModelSlot(database.db, 'anthropic:x', { organizationId, maxDelayMs, isRepeated })
const reserveMany = async (count: number): Promise<number[]> => {
  const delays: number[] = []
  while (delays.length < count) delays.push((await reserve())!.delayMs)
  return delays
}
const limit = (retryAfterMs: number) => recordModelLimit(database.db, 'anthropic:x', retryAfterMs)
const age = (interval: string) =>
  database.db.pool.query(
    `UPDATE model_limits SET limited_at = limited_at - $1::interval, not_before = not_before - $1::interval`,
    [interval],
  )
const readInterval = async () =>
  (await database.db.pool.query<{ ms: number }>('SELECT interval_ms AS ms FROM model_limits')).rows[0]?.ms

describe('the pace of requests to a model', () => {
  beforeEach(() => database.db.pool.query('DELETE FROM model_limits'))

  test('requests to a model are not delayed before its API has limited one', async () => {
    expect(await reserve()).toBeUndefined()
    await recordModelLimit(database.db, 'anthropic:y', 60_000)
    expect(await reserve()).toBeUndefined()
  })

  test('concurrent requests to a limited model get times in turn for about a second, and the others times to try again', async () => {
    await limit(0)
    const startedMs = performance.now()
    const slots = await Promise.all(Array.from({ length: 40 }, () => reserve()))
    const tookMs = performance.now() - startedMs
    const delaysOf = (isReserved: boolean) =>
      slots.flatMap((slot) => (slot?.isReserved === isReserved ? [slot.delayMs] : [])).toSorted((a, b) => a - b)
    const reserved = delaysOf(true)
    expect(reserved.length).toBeGreaterThan(1)
    // While the requests come, more times come within a second of now: fewer than one each 100 ms.
    expect(reserved.length).toBeLessThan(10 + tookMs / 100)
    expect(reserved.at(-1)).toBeLessThanOrEqual(1_000)
    const later = delaysOf(false)
    expect(later.at(-1)! - later[0]!).toBeGreaterThan(1_000)
    expect(later[0]).toBeGreaterThan(reserved.at(-1)!)
  })

  describe('shared by organizations whose runs wait', () => {
    // No run gets a slot: the time of the last request is far ahead.
    beforeEach(async () => {
      await limit(0)
      await database.db.pool.query(`UPDATE model_limits SET last_at = now() + interval '1 minute'`)
    })

    test('those of one do not postpone those of another', async () => {
      expect(Math.max(...(await reserveMany(100)))).toBeGreaterThan(70_000)
      organizationId = newId()
      const ofOther = await reserveMany(3)
      expect(ofOther.toSorted((a, b) => a - b)).toEqual(ofOther)
      expect(ofOther.at(-1)).toBeLessThan(62_000)
    })

    test('those of many try again one after the other, and none later than if all were of one', async () => {
      const one = organizationId
      const delays = await reserveMany(50)
      const ofOthers: number[] = []
      for (let other = 0; other < 20; other += 1) {
        organizationId = newId()
        ofOthers.push(...(await reserveMany(1)))
      }
      expect(Math.max(...ofOthers) - Math.min(...ofOthers)).toBeGreaterThan(2_000)
      organizationId = one
      delays.push(...ofOthers, ...(await reserveMany(10)))
      expect(Math.max(...delays)).toBeLessThan(60_250 + delays.length * 200)
    })
  })

  test('no request gets a time before the one that the API asked for, or later than its caller waits', async () => {
    const startedMs = performance.now()
    await limit(40_000)
    const slots = await Promise.all(Array.from({ length: 5 }, () => reserve()))
    expect(slots.every((slot) => slot?.isReserved === false)).toBe(true)
    const first = Math.min(...slots.map((slot) => slot!.delayMs))
    expect(first).toBeGreaterThan(39_990 - (performance.now() - startedMs))
    // The delays are from the clock of each request.
    const times = slots.map((slot) => slot!.delayMs - slot!.blockedMs)
    expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(400)
    await database.db.pool.query('UPDATE model_limits SET interval_ms = 60000')
    expect(await reserve()).toMatchObject({ isReserved: false })
    expect(await reserve(60_000)).toMatchObject({ isReserved: true })
  })

  test('the pace slows down once for requests that are limited together, and recovers with each request that is sent', async () => {
    await limit(60_000)
    const first = await readInterval()
    await Promise.all(Array.from({ length: 10 }, () => limit(60_000)))
    expect(await readInterval()).toBe(first)
    await age('2 minutes')
    await Promise.all(Array.from({ length: 10 }, () => limit(60_000)))
    const slow = await readInterval()
    expect(slow).toBe(first! * 1.3)
    await age('1 minute')
    await reserve(30_000, true)
    expect(await readInterval()).toBe(slow)
    await reserve()
    expect(await readInterval()).toBeLessThan(slow!)
  })

  test('a limit that was not reached for ten minutes is forgotten, but not while the API asks to wait', async () => {
    await limit(100)
    await age('11 minutes')
    expect(await reserve()).toBeUndefined()
    expect(await readInterval()).toBeUndefined()
    await limit(3_600_000)
    await age('11 minutes')
    expect(await reserve()).toMatchObject({ isReserved: false })
  })
})
