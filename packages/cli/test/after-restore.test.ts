import { createDatabase } from '@workflow-service/database'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { expect, test } from '@jest/globals'
import { wf } from './support/wf.ts'

const database = useTestDatabase()
const afterRestore = async (args: string[], ask?: (question: string) => Promise<string>) =>
  await wf({ DATABASE_URL: database.url }, ['after-restore', ...args], ask ? { ask } : {})

test('refuses while a service is connected, and without a confirmation', async () => {
  const runner = createDatabase({ url: database.url, applicationName: 'runner' })
  await runner.ping()
  expect(await afterRestore(['--yes'])).toMatchObject({
    exitStatus: 1,
    stderr: expect.stringContaining('services use the database: runner. Stop them first.'),
  })
  await runner.close()
  expect(await afterRestore([])).toMatchObject({ exitStatus: 1, stderr: expect.stringContaining('--yes') })
  expect(await afterRestore([], async () => 'yes')).toMatchObject({ exitStatus: 1 })
})

test('says what it ended', async () => {
  expect((await afterRestore(['--yes', '--json'])).json()).toEqual({ runs: 0, deliveries: 0, schedules: 0 })
  expect(await afterRestore([], async () => 'restored')).toMatchObject({
    exitStatus: 0,
    stdout: expect.stringContaining('0 runs ended as failed'),
  })
})
