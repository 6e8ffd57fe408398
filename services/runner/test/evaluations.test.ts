import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import {
  type CaseIn,
  type CaseOut,
  type CasePayload,
  type EvaluationDetailOut,
  type EvaluationIn,
  EVALUATIONS_AT_ONCE,
  type ToolCallStep,
  type TrialOut,
} from '@workflow-service/contract'
import {
  claimCase,
  claimTrial,
  deleteWorkflow,
  finishCase,
  findCase,
  findEvaluation,
  findTrial,
  finishTrial,
  listVersions,
  newId,
  readUsage,
  recordTrial,
  releaseCase,
  releaseTrial,
  saveCase,
  saveFile,
  startEvaluation,
  stopEvaluation,
  type WorkflowEdit,
} from '@workflow-service/database'
import {
  beginTransaction,
  type ModelTurn,
  type StubModelServer,
  untilLocked,
  waitUntil,
} from '@workflow-service/testkit'
import { useStubModel } from '@workflow-service/testkit/use-stub-model'
import type { EvaluationCase } from '../evaluation/case-schema.ts'
import { readCases, toText } from '../evaluation/read-cases.ts'
import { runCase } from '../evaluation/run-case.ts'
import { BUILTIN_ONLY } from '../src/agent/agent-settings.ts'
import { createAgent } from '../src/agent/create-agent.ts'
import { callTool, end } from './support/model-agent.ts'
import { useModelFiles } from './support/model-config.ts'
import { FAST_TIMING, MODEL_TIMING, type TestOrganization, useRunnerFixture } from './support/runner-fixture.ts'

const fixture = useRunnerFixture('one process')
let acme: TestOrganization
let edit: WorkflowEdit
const startModelServer = useStubModel()
const writeModels = useModelFiles()
let servers: StubModelServer[]
const startRunner = () => fixture.startRunner({ timing: { ...FAST_TIMING, trialMs: 100 } })
beforeEach(async () => {
  acme = await fixture.createOrganization()
  edit = editOf(acme)
})
afterEach(async () => {
  await fixture.db.pool.query('TRUNCATE cases, evaluations CASCADE')
})

function editOf({ organizationId, workflowId }: TestOrganization): WorkflowEdit {
  const principal = { organizationId, userId: newId(), role: 'owner' as const, name: 'Ada', address: null }
  return { workflowId, principal, requestId: newId() }
}

/** Keeps the text with one payload that is right. */
async function keep(context: string, message = context, of = edit): Promise<string> {
  const source = await fixture.db.prisma.webhookSource.findFirstOrThrow({
    where: { organizationId: of.principal.organizationId, name: 'Order intake' },
  })
  const expected: CasePayload[] = [{ source_id: source.id, source_name: source.name, payload: { message } }]
  const id = newId()
  await saveCase(fixture.db, of, id, { name: context, context, expected, version: null })
  return id
}

async function start(change: Partial<EvaluationIn> = {}, of = edit, keptBytes?: number): Promise<string> {
  const id = newId()
  const nothing = { model: null, version_id: null, description: null, rules: null }
  await startEvaluation(fixture.db, of, { id, ...nothing, ...change }, keptBytes)
  return id
}

const viewerOf = ({ principal }: WorkflowEdit) => ({ organizationId: principal.organizationId, memberId: null })

async function read(id: string, of = edit): Promise<EvaluationDetailOut> {
  return (await findEvaluation(fixture.db, viewerOf(of), of.workflowId, id))!
}

const untilEnded = (id: string) =>
  waitUntil(async () => {
    const evaluation = await read(id)
    return evaluation.finished_at ? evaluation : undefined
  })

const rules = (message: string) => `deliveries: [{ to: Order intake, payload: { message: '${message}' } }]`

async function startModels(turns: Record<string, ModelTurn>, fallback = {}): Promise<Record<string, string>> {
  servers = await Promise.all(Object.values(turns).map((otherwise) => startModelServer({ otherwise })))
  const models = Object.keys(turns).map((name, index) => {
    const model = { model: `openai-compatible:${name}`, base_url: servers[index]!.baseUrl }
    return [name, { ...model, prices: { input: 1, output: 2 }, ...(name === 'right' && fallback) }]
  })
  return writeModels({ default: 'right', currency: 'EUR', models: Object.fromEntries(models) as object })
}

describe('an evaluation', () => {
  test('says for each case whether the payloads are right, and in which fields they are not, and sends nothing', async () => {
    await keep('Total: 5')
    await keep('Total: 6', 'Total: 7')
    await startRunner()
    const found = await untilEnded(await start())
    expect(found).toMatchObject({ total: 2, done: 2, same: 1, cost_micros: null, version_number: 1 })
    const difference = { source_name: 'Order intake', field: 'message', expected: '"Total: 7"', actual: '"Total: 6"' }
    expect(found.results.map(({ error, differences }) => [error, differences])).toEqual([
      [null, []],
      [null, [difference]],
    ])
    expect(acme.endpoint.requests).toEqual([])
    const { organizationId } = acme
    expect(await fixture.db.prisma.start.count({ where: { organizationId } })).toBe(0)
    const audited = await fixture.db.prisma.auditEvent.findMany({ where: { organizationId, actorKind: 'person' } })
    expect(audited.map(({ action }) => action)).toEqual(['case.saved', 'case.saved', 'evaluation.started'])
  })

  test('takes rules that are not saved, an older version with its files, and the error of a run that would fail', async () => {
    await keep('Total: 5')
    await startRunner()
    const draft = await untilEnded(await start({ rules: rules('text(fields.total)') }))
    expect(draft.results[0]!.differences[0]).toMatchObject({ expected: '"Total: 5"', actual: '"5"' })
    const { id, version } = await fixture.db.prisma.file.findFirstOrThrow({ where: { workflowId: acme.workflowId } })
    const content = rules('text(fields.sum)')
    await saveFile(fixture.db, edit, id, { name: 'rules.yaml', path: [], content, version })
    const failed = await untilEnded(await start())
    expect(failed.results[0]!.error).toMatch(/^rule_failed: /)
    expect(failed).toMatchObject({ same: 0, version_number: 2 })
    const older = (await listVersions(fixture.db, viewerOf(edit), acme.workflowId)).find(({ number }) => number === 1)!
    expect(await untilEnded(await start({ version_id: older.id }))).toMatchObject({ same: 1, version_number: 1 })
  })

  test('continues after its runner was killed, and its cases wait for their turn among organizations', async () => {
    for (const context of ['1', '2', '3', '4', '5', '6']) await keep(context)
    const other = await fixture.createOrganization()
    await keep('7', '7', editOf(other))
    const id = await start()
    await start({}, editOf(other))
    // As runners that die: two of this organization, then the other one, whose evaluation is younger.
    const claimed = []
    for (let n = 0; n < 6; n += 1) claimed.push(await claimCase(fixture.db, 60_000))
    expect(claimed.map((each) => each?.run.context)).toEqual(['1', '7', '2', '3', '4', undefined])
    await fixture.db.pool.query('UPDATE evaluation_results SET lease_until = now()')
    await startRunner()
    expect(await untilEnded(id)).toMatchObject({ total: 6, done: 6, same: 6 })
  })

  test('has no case whose id another workflow has, which is not said to be one too many', async () => {
    const other = editOf(await fixture.createOrganization())
    const id = await keep('Total: 1', 'Total: 1', other)
    const theirs = { name: 'Mine', context: 'Mine', expected: [], version: null }
    await expect(saveCase(fixture.db, edit, id, theirs)).rejects.toMatchObject({ problem: 'id_taken' })
  })

  test('has cases of a limited size in all workflows, of which a person can make one smaller', async () => {
    const id = await keep('Total: 1')
    const even = await keep('Even', 'x'.repeat(100_000))
    // Random, because PostgreSQL compresses other texts.
    await fixture.db.pool.query(
      `INSERT INTO cases (id, organization_id, workflow_id, name, context, expected, saved_by_name)
       SELECT gen_random_uuid(), organization_id, workflow_id, 'Large ' || n, context, json_build_array($2::text), ''
       FROM cases CROSS JOIN generate_series(1, 47) AS n WHERE id = $1`,
      [id, randomBytes(1_100_000).toString('base64')],
    )
    await expect(keep('Total: 2')).rejects.toMatchObject({
      problem: 'limit_reached',
      message: expect.stringContaining('at most 64 MiB'),
    })
    const find = async (of: string) => (await findCase(fixture.db, viewerOf(edit), acme.workflowId, of))!
    const { expected, version: evenVersion } = await find(even)
    const payload = { message: randomBytes(75_000).toString('base64') }
    const random = { name: 'Even', context: 'Even', expected: [{ ...expected[0]!, payload }], version: evenVersion }
    await expect(saveCase(fixture.db, edit, even, random)).rejects.toMatchObject({ problem: 'limit_reached' })
    const { version } = await find(id)
    const smaller = { name: 'x', context: 'x', expected: [], version }
    expect(await saveCase(fixture.db, edit, id, smaller)).toMatchObject({ name: 'x' })
  })

  test('deletes the oldest ones that have ended, whose results are too large in all workflows', async () => {
    const other = editOf(await fixture.createOrganization())
    await keep('Total: 1')
    await keep('Total: 1', 'Total: 1', other)
    const ids = [await start(), await start(), await start(), await start({}, other)]
    // Random, because PostgreSQL compresses other texts: 20,000 bytes each.
    const payloads = JSON.stringify([randomBytes(15_000).toString('base64')])
    await fixture.db.pool.query(
      `UPDATE evaluation_results SET payloads = $2, differences = '[]', finished_at = CASE WHEN evaluation_id <> $1 THEN now() END`,
      [ids[1], payloads],
    )
    await start({}, edit, 90_000)
    const found = async () => await Promise.all([read(ids[0]!), read(ids[1]!), read(ids[2]!), read(ids[3]!, other)])
    expect(await found()).not.toContain(undefined)
    await start({}, edit, 30_000)
    // The oldest; the second one has not ended.
    expect((await found()).map((each) => each !== undefined)).toEqual([false, true, true, true])
  })

  test('makes its payloads the right ones only for the text that it has tried', async () => {
    const ids = [await keep('Total: 6', 'Total: 7'), await keep('Total: 8', 'Total: 9')]
    await startRunner()
    const { results } = await untilEnded(await start())
    const [same, edited] = results.map(({ id, case_version: version }) => ({
      name: 'Right',
      of: { result_id: id },
      version,
    }))
    const saved = await saveCase(fixture.db, edit, ids[0]!, same!)
    expect(saved.expected).toMatchObject([{ payload: { message: 'Total: 6' } }])
    expect(await saveCase(fixture.db, edit, ids[0]!, same!)).toEqual(saved)
    const { version } = await saveCase(fixture.db, edit, ids[1]!, { ...edited!, of: undefined, context: 'Total: 10' })
    for (const each of [edited!, { ...edited!, version }]) {
      await expect(saveCase(fixture.db, edit, ids[1]!, each)).rejects.toMatchObject({ problem: 'changed_meanwhile' })
    }
  })

  test('takes nothing from a runner whose lease of a case has expired, or is another one by now', async () => {
    await keep('Total: 5')
    const id = await start()
    const { run: first } = (await claimCase(fixture.db, 60_000))!
    const late = { payloads: null, differences: [], costMicros: null, durationMs: 1, error: 'timed_out: It was late' }
    await fixture.db.pool.query('UPDATE evaluation_results SET lease_until = now()')
    await finishCase(fixture.db, { ...first, ...late })
    const { run: second } = (await claimCase(fixture.db, 60_000))!
    await finishCase(fixture.db, { ...first, ...late })
    await releaseCase(fixture.db, first, { delayMs: 0, isCounted: false })
    expect([second.attempts, await claimCase(fixture.db, 60_000)]).toEqual([2, undefined])
    expect(await read(id)).toMatchObject({ done: 0 })
    await finishCase(fixture.db, { ...second, ...late, error: null })
    expect(await read(id)).toMatchObject({ done: 1, same: 1 })
  })

  test('ends when a person stops it: no further case begins', async () => {
    await keep('Total: 5')
    const id = await start()
    await stopEvaluation(fixture.db, edit, id)
    expect(await read(id)).toMatchObject({ done: 1, same: 0, finished_at: expect.any(String) })
    expect(await claimCase(fixture.db, 60_000)).toBeUndefined()
  })
})

/** Workflows of the organization, as many as may be evaluated and this one, with a case each. */
async function addWorkflows(): Promise<WorkflowEdit[]> {
  const workflows = [edit]
  const values = { organizationId: acme.organizationId, isActive: true, name: 'Forward', description: 'd' }
  while (workflows.length <= EVALUATIONS_AT_ONCE) {
    const id = newId()
    await fixture.db.prisma.workflow.create({ data: { id, ...values, scope: 'company_wide', searchText: '' } })
    workflows.push({ ...edit, workflowId: id })
  }
  for (const of of workflows) await keep('Total: 5', 'Total: 5', of)
  return workflows
}

describe('evaluations of several workflows', () => {
  test('end with the deletion of a workflow, also before its rows are deleted, and count no more', async () => {
    const [, ...others] = await addWorkflows()
    for (const of of others) await start({}, of)
    await expect(start()).rejects.toMatchObject({ problem: 'limit_reached' })
    for (const of of others) await deleteWorkflow(fixture.db, of)
    expect(await claimCase(fixture.db, 60_000)).toBeUndefined()
    await start()
    expect((await claimCase(fixture.db, 60_000))?.run.workflow.id).toBe(acme.workflowId)
  })

  test('are no more than the limit when they are started at once', async () => {
    const workflows = await addWorkflows()
    const started = await Promise.allSettled(workflows.map((of) => start({}, of)))
    expect(started.filter(({ status }) => status === 'rejected')).toMatchObject([
      { reason: { problem: 'limit_reached' } },
    ])
  })
})

async function keepOf(of: CaseIn['of']): Promise<CaseOut> {
  return await saveCase(fixture.db, edit, newId(), { name: 'Kept', of, version: null })
}

/** Resolves to the run, after which no runner is left. */
async function execute(context: string): Promise<string> {
  const runner = await startRunner()
  const started = await fixture.start(acme, { context })
  await fixture.waitForRuns([started])
  await runner.stop()
  return started.startId
}

describe('a run that is kept as a case', () => {
  test('has the payloads that were accepted, and is refused once deliveries or the journal are deleted', async () => {
    const run_id = await execute('Total: 5')
    expect((await keepOf({ run_id })).expected).toMatchObject([{ payload: { message: 'Total: 5' } }])
    const journal = await fixture.db.prisma.runStep.findMany({ where: { runId: run_id } })
    await fixture.db.prisma.runStep.deleteMany({ where: { runId: run_id } })
    await expect(keepOf({ run_id })).rejects.toMatchObject({ message: expect.stringContaining('are all kept') })
    await fixture.db.prisma.runStep.createMany({ data: journal as never })
    await keepOf({ run_id })
    await fixture.db.prisma.delivery.deleteMany({ where: { runId: run_id } })
    await expect(keepOf({ run_id })).rejects.toMatchObject({ message: expect.stringContaining('are all kept') })
  })

  test('is tried at the time at which the run was accepted, also after it was edited', async () => {
    const run_id = await execute('Total: 5')
    const createdAt = new Date('2026-01-31T08:59:58.123Z')
    await fixture.db.prisma.start.update({ where: { id: run_id }, data: { createdAt } })
    const { id, version } = await keepOf({ run_id })
    await saveCase(fixture.db, edit, id, { name: 'Kept', context: 'Due today', version })
    await start()
    const claimed = await claimCase(fixture.db, 60_000)
    expect([claimed?.run.context, new Date(claimed!.run.acceptedAt)]).toEqual(['Due today', createdAt])
  })

  test('is not kept while an operator deletes the run', async () => {
    const run_id = await execute('Total: 5')
    const { pool } = fixture.db
    using deleting = await beginTransaction(pool)
    await deleting.query('SELECT FROM starts WHERE id = $1 FOR UPDATE', [run_id])
    const kept = keepOf({ run_id }).then(
      () => 'kept',
      (error: Error) => error.message,
    )
    await untilLocked(pool, 'FOR KEY SHARE')
    await deleting.query('DELETE FROM starts WHERE id = $1', [run_id])
    await deleting.query('COMMIT')
    expect(await kept).toBe('must be a run that has succeeded')
  })

  test('is refused as a trial some of whose steps were too large to keep', async () => {
    const steps = [{ kind: 'tool_call', data: { omitted_bytes: 3_000_000 } }]
    const trialId = newId()
    await fixture.db.pool.query(
      `INSERT INTO trials (id, organization_id, workflow_id, user_id, context, steps, finished_at)
       VALUES ($1, $2, $3, $4, 'go', $5, now())`,
      [trialId, acme.organizationId, acme.workflowId, edit.principal.userId, JSON.stringify(steps)],
    )
    await expect(keepOf({ trial_id: trialId })).rejects.toMatchObject({
      message: expect.stringContaining('too large'),
    })
  })
})

describe('an evaluation with a model', () => {
  const usage = { inputTokens: 1_000, outputTokens: 100 }
  const answerWith =
    (message: string): ModelTurn =>
    ({ body }) => {
      const isSent = JSON.stringify(body).includes('Accepted')
      return { ...(isSent ? end() : callTool('send_to_order_intake', { message })), usage }
    }

  test('is of the model that it names, whose fallback does not answer for it', async () => {
    const broken: ModelTurn = { failure: 'status', status: 401 }
    const env = await startModels({ right: broken, spare: answerWith('Total: 5') }, { fallback: 'spare' })
    await fixture.startRunner({ timing: { ...MODEL_TIMING, trialMs: 100 } }, env)
    await keep('Total: 5')
    const found = await untilEnded(await start())
    expect(found).toMatchObject({ same: 0, results: [{ error: expect.stringMatching(/^model_unauthorized/) }] })
    expect(servers[1]!.requests).toEqual([])
  })

  test('compares models with their costs, which count in the budgets, and tries a task that is not saved', async () => {
    const env = await startModels({ right: answerWith('Total: 5'), wrong: answerWith('5') })
    await fixture.startRunner({ timing: { ...MODEL_TIMING, trialMs: 100 } }, env)
    const isOffered = `SELECT FROM models WHERE name = 'wrong'`
    await waitUntil(async () => (await fixture.db.pool.query(isOffered)).rowCount === 1)
    await keep('Total: 5')
    const right = await untilEnded(await start({ model: 'right' }))
    // Two answers of 1,000 and 100 tokens.
    expect(right).toMatchObject({ model: 'right', same: 1, cost_micros: 2_400 })
    const wrong = await untilEnded(await start({ model: 'wrong', description: 'Post the number to Order intake.' }))
    expect(wrong).toMatchObject({ model: 'wrong', same: 0, cost_micros: 2_400 })
    expect(JSON.stringify(servers[1]!.requests[0]!.body)).toContain('Post the number to Order intake.')
    const { workflowId } = acme
    const spent = await fixture.db.pool.query('SELECT spent::int FROM model_spending WHERE workflow_id = $1', [
      workflowId,
    ])
    expect(spent.rows).toEqual([{ spent: 4_800 }])
    for (const by of ['workflow', 'api_key', 'model'] as const) {
      const { groups } = await readUsage(fixture.db, viewerOf(edit), { by })
      const [cost, tokens] = [groups.map((each) => each.cost_micros), groups.map((each) => each.tokens)]
      expect([by, cost, tokens]).toEqual([
        by,
        by === 'model' ? [2_400, 2_400] : [4_800],
        by === 'model' ? [2_200, 2_200] : [4_400],
      ])
    }
    await fixture.db.prisma.workflow.update({ where: { id: workflowId }, data: { dayBudget: 4_800 } })
    const refused = await untilEnded(await start({ model: 'right' }))
    expect(refused.results[0]!.error).toMatch(/^budget_exceeded: /)
    expect(servers[0]!.requests).toHaveLength(2)
  })

  test('ends when a budget is spent, as a trial does, also of a workflow whose runs wait for the next day', async () => {
    const env = await startModels({ right: answerWith('Total: 5') })
    const { workflowId: id } = acme
    await fixture.db.prisma.workflow.update({ where: { id }, data: { dayBudget: 0, whenSpent: 'wait' } })
    await fixture.startRunner({ timing: { ...MODEL_TIMING, trialMs: 100 } }, env)
    const error = expect.stringMatching(/^budget_exceeded: The budget of the workflow for a day is 0\.00 EUR/)
    const trial = await tryText('Total: 5')
    expect(trial).toMatchObject({ error })
    expect(JSON.stringify(trial.steps)).not.toContain('waits for the next day')
    await keep('Total: 5')
    expect(await untilEnded(await start())).toMatchObject({ same: 0, results: [{ error }] })
  })

  test('is recorded once the database answers, as a trial is, without asking the model again', async () => {
    const env = await startModels({ right: answerWith('Total: 5') })
    await fixture.startRunner({ timing: { ...MODEL_TIMING, trialMs: 100 } }, env)
    const { pool } = fixture.db
    await pool.query(
      `CREATE SEQUENCE endings;
       CREATE FUNCTION fail_at_first() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         IF nextval('endings') % 2 = 1 THEN RAISE 'the server stops' USING ERRCODE = '57P01'; END IF;
         RETURN NEW;
       END $$;
       CREATE TRIGGER fail BEFORE UPDATE ON trials FOR EACH ROW WHEN (NEW.finished_at IS NOT NULL)
         EXECUTE FUNCTION fail_at_first();
       CREATE TRIGGER fail BEFORE UPDATE ON evaluation_results FOR EACH ROW WHEN (NEW.finished_at IS NOT NULL)
         EXECUTE FUNCTION fail_at_first()`,
    )
    try {
      expect(payloadsOf(await tryText('Total: 5'))).toEqual([{ message: 'Total: 5' }])
      await keep('Total: 5')
      expect(await untilEnded(await start())).toMatchObject({ same: 1 })
      expect(servers[0]!.requests).toHaveLength(4)
    } finally {
      await pool.query('DROP FUNCTION fail_at_first CASCADE; DROP SEQUENCE endings')
    }
  })

  test('is refused with a model that is not offered', async () => {
    await keep('Total: 5')
    await expect(start({ model: 'unknown' })).rejects.toMatchObject({ problem: 'model_not_offered' })
  })
})

const payloadsOf = ({ steps }: TrialOut) =>
  steps.flatMap(({ kind, data }) => (kind === 'tool_call' ? [(data as ToolCallStep).delivery?.payload] : []))

/** Records that a person tries the text. The returned function reads the trial. */
async function startTrial(of: TestOrganization, context: string, draft: string | null = null, userId = newId()) {
  const viewer = { organizationId: of.organizationId, memberId: null }
  const trial = { id: newId(), workflowId: of.workflowId, userId }
  const outcome = await recordTrial(fixture.db, viewer, { ...trial, sessionId: null, context, rules: draft })
  expect(outcome).toBe('accepted')
  return () => findTrial(fixture.db, viewer, trial)
}

/** Tries the text, and resolves to the trial when it has ended. */
async function tryText(context: string, draft: string | null = null): Promise<TrialOut> {
  const find = await startTrial(acme, context, draft)
  return await waitUntil(async () => {
    const found = await find()
    return found?.finished_at ? found : undefined
  })
}

describe('a trial', () => {
  test('has the payloads of the run that would follow, and neither sends nor records one', async () => {
    await startRunner()
    const trial = await tryText('Total: 5')
    expect(payloadsOf(trial)).toEqual([{ message: 'Total: 5' }])
    expect(trial.error).toBeNull()
    const run = await fixture.start(acme, { context: 'Total: 5' })
    await fixture.waitForRuns([run])
    expect(acme.endpoint.requests.map(({ json }) => json)).toEqual(payloadsOf(trial))
    expect(await fixture.db.prisma.start.count({ where: { organizationId: acme.organizationId } })).toBe(1)
    expect(await fixture.db.prisma.delivery.count({ where: { organizationId: acme.organizationId } })).toBe(1)
  })

  test('follows rules that are not saved, and has the error of a run that would fail', async () => {
    await startRunner()
    expect(payloadsOf(await tryText('Total: 5', rules('text(fields.total)')))).toEqual([{ message: '5' }])
    const failed = await tryText('Total: 5', rules('text(fields.sum)'))
    expect(failed.error).toMatch(/^rule_failed: rules\.yaml, line 1, .*there is no field "sum"/)
    expect(payloadsOf(failed)).toEqual([])
    expect(acme.endpoint.requests).toEqual([])
  })

  test('replaces the earlier one of the person, and is executed by one process', async () => {
    const userId = newId()
    const findFirst = await startTrial(acme, 'one', null, userId)
    await startTrial(acme, 'two', null, userId)
    expect(await findFirst()).toBeUndefined()
    const claimed = await Promise.all([claimTrial(fixture.db, 60_000), claimTrial(fixture.db, 60_000)])
    expect(claimed.flatMap((each) => each?.run.context ?? [])).toEqual(['two'])
  })

  test('waits for its turn among organizations', async () => {
    const other = await fixture.createOrganization()
    for (const context of ['1', '2', '3']) await startTrial(acme, context)
    await startTrial(other, '4')
    const claimed = []
    for (let n = 0; n < 5; n += 1) claimed.push(await claimTrial(fixture.db, 60_000))
    expect(claimed.map((each) => each?.run.context)).toEqual(['1', '4', '2', '3', undefined])
  })

  test('waits while its organization is suspended, and does not hold up that of another one', async () => {
    const other = await fixture.createOrganization()
    for (const organization of [acme, other]) await startTrial(organization, organization.organizationId)
    const suspend = (isSuspended: boolean) =>
      fixture.db.prisma.organization.update({ where: { id: acme.organizationId }, data: { isSuspended } })
    const claim = async () => (await claimTrial(fixture.db, 60_000))?.run.context
    await suspend(true)
    expect([await claim(), await claim()]).toEqual([other.organizationId, undefined])
    await suspend(false)
    expect(await claim()).toBe(acme.organizationId)
  })

  test('of a workflow that was deleted meanwhile is not executed', async () => {
    await startTrial(acme, 'x')
    await deleteWorkflow(fixture.db, edit)
    expect(await claimTrial(fixture.db, 60_000)).toBeUndefined()
  })

  test('begins anew with the file that there is then when one that its model reads is replaced', async () => {
    const { workflowId } = acme
    const upload = async (content: string) => {
      const name = 'logo.png'
      const base64 = Buffer.from(`\x89PNG\r\n\x1a\n ${content}`, 'latin1').toString('base64')
      await fixture.db.pool.query('DELETE FROM files WHERE workflow_id = $1', [workflowId])
      await fixture.db.prisma.file.create({ data: { id: newId(), workflowId, name, path: [], content: base64 } })
      return base64
    }
    let newer: string | undefined
    const turn: ModelTurn = async ({ conversation: { messages } }) => {
      newer ??= await upload('newer')
      return messages.length === 1 ? callTool('send_to_order_intake', { message: 'Total: 5' }) : end()
    }
    await upload('older')
    const env = await startModels({ right: turn }, { reads: ['image'] })
    await fixture.startRunner({ timing: { ...MODEL_TIMING, trialMs: 100 } }, env)
    const trial = await tryText('Total: 5, as in @logo.png')
    expect(trial.error).toBeNull()
    expect(servers[0]!.requests.map(({ conversation }) => conversation.messages[0]!.files?.[0])).toEqual([
      expect.not.stringContaining(newer!),
      expect.stringContaining(newer!),
      expect.stringContaining(newer!),
    ])
  })

  test('takes nothing from a process that lost it, as one that was paused did', async () => {
    const find = await startTrial(acme, 'x')
    const paused = (await claimTrial(fixture.db, 0))!.run
    const other = (await claimTrial(fixture.db, 60_000))!.run
    await releaseTrial(fixture.db, paused)
    await finishTrial(fixture.db, { ...paused, error: 'timed_out: late', steps: [] })
    expect(await find()).toMatchObject({ finished_at: null })
    expect(await claimTrial(fixture.db, 60_000)).toBeUndefined()
    await finishTrial(fixture.db, { ...other, error: null, steps: [] })
    expect(await find()).toMatchObject({ error: null, finished_at: expect.any(String) })
  })
})

/** What a run did, whether in process or on real services. */
interface Ended {
  readonly status: string
  readonly error: string | null
  readonly deliveries: readonly { readonly source: string; readonly payload: unknown; readonly outcome: string }[]
}

const CASES = ['orders-json-object', 'values-contradiction', 'endpoints-one-of-two-rejects', 'rules-above-threshold']

const evaluationCases = readCases(join(import.meta.dirname, '../evaluation/cases/*.json'))
const chosen = CASES.map((id) => evaluationCases.find((entry) => entry.id === id)!)

/** Executes the case with a database, a dispatcher, an endpoint and a runner. */
async function runOnServices({ workflow, sources, context }: EvaluationCase): Promise<Ended> {
  const organization = await fixture.createOrganization({
    description: toText(workflow.description),
    files: (workflow.files ?? []).map(({ path, content }) => ({ name: path, content: toText(content) })),
    sources: Object.fromEntries(
      sources.map(({ name, example, endpoint = [{ status: 204 }] }) => [
        name,
        { example, answer: endpoint[0] as object },
      ]),
    ),
  })
  const accepted = await fixture.start(organization, { context: toText(context) })
  const [details] = await fixture.waitForRuns([accepted])
  const outcomes = new Map(details!.deliveries.map(({ source_name, outcome }) => [source_name, outcome]))
  const deliveries = organization.endpoint.requests.map(({ path, json }) => {
    const source = sources.find(({ name }) => path === `/${encodeURIComponent(name)}`)?.name ?? 'Order intake'
    return { source, payload: json, outcome: outcomes.get(source) ?? 'none' }
  })
  return { status: details!.status, error: details!.error, deliveries }
}

test('an evaluated run ends as on real services', async () => {
  await startRunner()
  for (const entry of chosen) {
    const { status, error, deliveries } = await runCase(createAgent(BUILTIN_ONLY), entry)
    expect({ id: entry.id, ...(await runOnServices(entry)) }).toEqual({ id: entry.id, status, error, deliveries })
  }
})
