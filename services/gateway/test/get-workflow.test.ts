import { expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { apiTrigger, startableWorkflow, type TestWorkflow, useTestGateway } from './support/test-gateway.ts'

const gateway = useTestGateway()

const applyAndGet = async (workflow: TestWorkflow, more: object = {}) => {
  const { key } = await gateway.apply({ ...more, workflows: [workflow] })
  return await gateway.get(`/v1/workflows/${workflow.id}`, { key })
}
const user = (email: string, firstName = '', lastName = '') => ({ email, first_name: firstName, last_name: lastName })

test('200 answers exactly the fields of the contract, with filters as they were configured', async () => {
  const id = newId()
  const trigger = { id: newId(), source: newId() }
  const file = newId()
  const fields = {
    id,
    name: 'Forward "orders" 🚀',
    description: 'Line\none',
    scope: 'only_me',
    is_active: false,
    auto_run: { enabled: true, frequency: 'weekly' as const },
    created_at: '2026-01-02T03:04:05.006Z',
  }
  const triggerFields = {
    id: trigger.id,
    name: 'Shop',
    events: [
      { slug: 'z', name: 'Z' },
      { slug: 'a', name: 'A' },
    ],
    filters: { z: '1', b: { 'a b': [1.5, true, null, 'ß'] }, a: 12_345_678_901_234 },
    input_message: 'An order:',
    subagent_sources: [{ id: trigger.source, name: 'Street', type: 'street' }],
  }
  const location = { id: file, name: 'a.md', path: ['docs', 'more'] }
  const { body, text } = await applyAndGet(
    startableWorkflow({
      ...fields,
      users: ['ada@acme.test'],
      triggers: [apiTrigger(triggerFields)],
      files: [{ ...location, content: 'secret text' }],
      updated_at: '2026-02-03T04:05:06.700+02:00',
    }),
    { users: [user('ada@acme.test', 'Ada', 'Lovelace')] },
  )
  expect(body).toEqual({
    ...fields,
    users: [{ email: 'ada@acme.test', name: 'Ada Lovelace' }],
    triggers: [{ ...triggerFields, is_active: true, trigger_source: { slug: 'api', name: 'API' } }],
    files: [location],
    updated_at: '2026-02-03T02:05:06.700Z',
  })
  expect(text).toContain(JSON.stringify(triggerFields.filters))
})

test('200 answers a workflow without users, triggers, files and auto-run with empty lists and nulls', async () => {
  const { body } = await applyAndGet(startableWorkflow({ scope: 'only_me', triggers: [], description: '' }))
  expect(body).toMatchObject({ users: [], triggers: [], files: [], auto_run: { enabled: null, frequency: null } })
})

test('200 passes on unknown scopes and source types', async () => {
  const sources = [{ name: 'New', type: 'brand_new' }]
  const workflow = startableWorkflow({ scope: 'team_wide', triggers: [apiTrigger({ subagent_sources: sources })] })
  const { body } = await applyAndGet(workflow)
  expect([body.scope, body.triggers[0]?.subagent_sources[0]?.type]).toEqual(['team_wide', 'brand_new'])
})

test('200 builds a name from what it has of first and last', async () => {
  const users = [
    user('a@acme.test', 'Ada', 'Lovelace'),
    user('b@acme.test', 'Ada', ''),
    user('c@acme.test', '', 'Lovelace'),
  ]
  const emails = [...users.map(({ email }) => email), 'd@acme.test']
  const { body } = await applyAndGet(startableWorkflow({ scope: 'only_me', users: emails }), {
    users: [...users, user('d@acme.test', '', '')],
  })
  expect(body.users.map(({ name }) => name)).toEqual(['Ada Lovelace', 'Ada', 'Lovelace', ''])
})

test('200 lists all users of the organization for company_wide, and the named users for other scopes', async () => {
  const users = ['c@acme.test', 'a@acme.test', 'b@acme.test'].map((email) => user(email))
  for (const [scope, listed] of [
    ['company_wide', ['a@acme.test', 'b@acme.test', 'c@acme.test']],
    ['only_me', ['b@acme.test']],
  ]) {
    const { body } = await applyAndGet(startableWorkflow({ scope, users: ['b@acme.test'] }), { users })
    expect(body.users.map(({ email }) => email)).toEqual(listed)
  }
})

test('200 has users by email, triggers by age, sources with built-in ones last and files with the root first', async () => {
  const byCodePoint = ['B', 'Z', 'a', 'b', 'é', '\ufffd', '🚀']
  const emails = ['B@x', 'Z@x', 'a-b@x', 'a.b@x', 'a@x', 'é@x', '\ufffd@x', '🚀@x']
  const sources = [
    ...byCodePoint.map((name) => ({ name, type: name === 'a' ? 'street' : 'api' })),
    ...byCodePoint.map((name) => ({ name, type: 'platform_internal' })),
  ]
  const triggers = [
    { name: 'first', is_active: false, created_at: '2026-01-01T00:00:00Z' },
    { name: 'second', is_active: true, created_at: '2026-01-02T00:00:00Z', subagent_sources: sources.toReversed() },
    { name: 'third', is_active: false, created_at: '2026-01-03T00:00:00Z' },
  ]
  const paths = ['B', 'z', 'é', 'B/a', 'a/x', 'a/b/a', 'a/b/b', 'a./a'].map((path) => path.split('/'))
  const files = paths.map((path) => ({ name: path.at(-1), path: path.slice(0, -1), content: '' }))
  const { body } = await applyAndGet(
    startableWorkflow({
      triggers: triggers.toReversed().map((trigger) => apiTrigger(trigger)),
      files: files.toReversed(),
    }),
    { users: emails.toReversed().map((email) => user(email)) },
  )
  expect(body.users.map(({ email }) => email)).toEqual(emails)
  expect(body.triggers).toMatchObject(triggers.map(({ name, is_active }) => ({ name, is_active })))
  const listed = body.triggers[1]?.subagent_sources ?? []
  expect(listed).toMatchObject(sources)
  expect(listed.every(({ id, type }) => (id === null) === (type === 'platform_internal'))).toBe(true)
  expect(body.files.map(({ name, path }) => [...path, name])).toEqual(paths)
})

test('404 answers the same for a missing workflow and one of another organization', async () => {
  const workflow = startableWorkflow()
  // The gateway has it in memory then.
  expect((await applyAndGet(workflow)).status).toBe(200)
  const foreign = await gateway.get(`/v1/workflows/${workflow.id}`)
  const missing = await gateway.get(`/v1/workflows/${newId()}`)
  expect(foreign.status).toBe(404)
  expect({ ...foreign.body.error, request_id: '' }).toEqual({ ...missing.body.error, request_id: '' })
})

test('422 refuses what is no id', async () => {
  const id = '01890a5d-ac96-774b-bcce-b302099a8057'
  for (const wrong of [
    'x',
    id.replaceAll('-', ''),
    `{${id}}`,
    id.slice(1),
    `${id.slice(1)}g`,
    `${id}%20`,
    '%00',
    '1%2F2',
  ]) {
    expect((await gateway.get(`/v1/workflows/${wrong}`)).violations).toEqual([['workflow_id', 'uuid_parsing']])
  }
})
