import { expect, test } from '@jest/globals'
import { createCapturedLogger } from '@workflow-service/testkit'
import { RunInterruptedError, RunParkedError } from './run-errors.ts'
import { planRun, type TrialContext } from './trials.ts'

test.each([
  [
    'parked',
    new RunParkedError('Other runs use up the budget', 1_000),
    'model_busy: Other runs use up the budget. Try again later',
  ],
  ['interrupted', new RunInterruptedError('Suspended'), 'organization_suspended: The organization is suspended'],
  ['timed out', new DOMException('', 'TimeoutError'), 'timed_out: The trial took longer than 2 minutes'],
])('says why a trial that was %s came to no end', async (_how, thrown, error) => {
  const ctx = {
    agent: () => Promise.reject(thrown),
    dispatcher: {},
    runStore: { open: () => ({}) },
    logger: createCapturedLogger().logger,
  }
  const run = { id: '', workflow: {} } as Parameters<typeof planRun>[1]['run']
  const planned = { run, rules: null, check: () => {}, stopping: new AbortController().signal }
  expect(await planRun(ctx as unknown as TrialContext, planned)).toMatchObject({ steps: [], error })
})
