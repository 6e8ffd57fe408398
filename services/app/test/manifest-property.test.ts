import { describe, expect, test } from '@jest/globals'
import { type AppOperationId, isName } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { applyManifests, toManifest } from '@workflow-service/database/manifest'
import * as fc from 'fast-check'
import { parse } from 'yaml'
import { type AppCall, useTestApp } from './support/test-app.ts'

const app = useTestApp()

// What YAML reads as something else when it is written without care, and what a name of a file or an event must not be.
const AWKWARD = [
  'null',
  '~',
  'yes',
  '1e3',
  '2026-01-01',
  '<<',
  '- a',
  'a: b',
  'a #b',
  '!!int 3',
  '%YAML 1.2',
  'a/b',
  '/',
]
const CONTROLS = ['a\n', '\n\na', 'a\r\nb\r', '\t', '\u0085', '\u2028', '\uFEFF', '\u0001', '\u007F', '\0', '\uD800']
const text = (maxLength: number) =>
  fc.oneof(
    fc.constantFrom(...AWKWARD, ...CONTROLS, '..', '---\n...', 'a', 'b'),
    fc.string({ unit: 'binary', maxLength }),
    fc.string({ maxLength }),
  )
const nameText = (maxLength: number) => text(maxLength).filter(isName)
const named = fc.record({ slug: text(20), name: nameText(20) })
const filters = fc.option(
  fc.dictionary(text(10), fc.oneof(text(20), fc.double(), fc.boolean(), fc.jsonValue()), { noNullPrototype: true }),
)
const trigger = fc.record({
  name: nameText(20),
  is_active: fc.boolean(),
  trigger_source: named,
  events: fc.array(named, { maxLength: 3 }),
  filters,
  input_message: text(60),
  subagent_sources: fc.array(
    fc.record({
      id: fc.option(fc.uuid()),
      name: nameText(20),
      type: fc.constantFrom('api', 'street', 'platform_internal', ' '),
    }),
    { maxLength: 2 },
  ),
})
const file = fc.record({ name: nameText(20), path: fc.array(nameText(10), { maxLength: 3 }), content: text(300) })
const user = fc.record({
  email: fc.oneof(
    fc.emailAddress(),
    text(20),
    text(8).map((name) => `${name}@acme.test`),
  ),
  first_name: nameText(20),
  last_name: nameText(20),
})
const workflow = fc.record({
  values: fc.record({
    name: nameText(20),
    description: text(300),
    scope: fc.constantFrom('company_wide', 'only_me', 'other'),
  }),
  triggers: fc.array(trigger, { maxLength: 2 }),
  files: fc.array(file, { maxLength: 4 }),
  users: fc.array(user, { maxLength: 2 }),
  schedule: fc.option(fc.record({ enabled: fc.boolean(), frequency: fc.constantFrom('daily', 'monthly', 'yearly') })),
})

describe('What the API accepts', () => {
  test('exports as a manifest that is valid and changes nothing', async () => {
    const { owner } = await app.createOrganization()
    const statuses = new Map<string, number>()
    const call = async <Id extends AppOperationId>(id: Id, request: AppCall) => {
      const answer = await app.call(owner, id, request)
      const key = `${id} ${answer.status}`
      statuses.set(key, (statuses.get(key) ?? 0) + 1)
      expect([200, 201, 409, 422]).toContain(answer.status)
      return answer
    }
    const property = fc.asyncProperty(workflow, async ({ values, triggers, files, users, schedule }) => {
      const id = newId()
      const params = { workflow_id: id }
      const created = await call('createWorkflow', { body: { id, ...values } })
      if (created.status !== 201) return
      for (const body of triggers) {
        await call('saveTrigger', { params: { ...params, trigger_id: newId() }, body: { ...body, version: null } })
      }
      for (const body of files) {
        await call('saveFile', { params: { ...params, file_id: newId() }, body: { ...body, version: null } })
      }
      const userIds: string[] = []
      for (const body of users) {
        const userId = newId()
        if ((await call('createUser', { body: { id: userId, ...body, role: null } })).status === 201)
          userIds.push(userId)
      }
      const { users_version: version, auto_run: autoRun } = (await call('getWorkflow', { params })).body
      await call('saveWorkflowUsers', { params, body: { user_ids: userIds, version } })
      if (schedule) await call('saveAutoRun', { params, body: { ...schedule, version: autoRun.version } })
      const { yaml } = (await call('exportWorkflow', { params })).body
      expect(await changesOf(yaml)).toEqual([])
    })
    await fc.assert(property, { seed: 1, numRuns: 30 })
    const { yaml } = (await call('exportManifest', {})).body
    expect(await changesOf(yaml)).toEqual([])
    for (const id of ['saveTrigger', 'saveFile', 'saveWorkflowUsers', 'saveAutoRun', 'createUser']) {
      const count = (statuses.get(`${id} 200`) ?? 0) + (statuses.get(`${id} 201`) ?? 0)
      expect([id, count > 2]).toEqual([id, true])
    }
  }, 120_000)
})

/** Plans the manifest, and returns what it would create or change. */
async function changesOf(yaml: string): Promise<unknown[]> {
  const [plan] = await applyManifests(app.db, [toManifest(parse(yaml))], { isDryRun: true })
  const { organization, users, workflows, webhookSources } = plan!
  return [organization, ...users, ...workflows, ...webhookSources].filter(({ outcome }) => outcome !== 'unchanged')
}
