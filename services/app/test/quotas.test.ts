import { describe, expect, test } from '@jest/globals'
import type { AppOperationId } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { triggerBody } from '@workflow-service/testkit'
import { type AppCall, keyIn, userIn, useTestApp } from './support/use-app.ts'

const app = useTestApp({
  MAX_WORKFLOWS: '3',
  MAX_TRIGGERS_PER_WORKFLOW: '1',
  MAX_FILES_PER_WORKFLOW: '2',
  MAX_FILE_MIB: '1',
  MAX_EMPTY_SESSIONS: '1',
  MAX_API_KEYS: '1',
  MAX_USERS: '4',
})

const workflow = (id = newId()) => ({ id, name: 'Orders', description: 'Book it.', scope: 'company_wide' })
const trigger = triggerBody()
const file = (name: string, content = 'x') => ({ name, path: [], content, version: null })
const call = (operationId: AppOperationId, given: AppCall) => app.call(app.organization.owner, operationId, given)
const createWorkflow = async () => (await call('createWorkflow', { body: workflow() })).body as { id: string }

describe('quotas', () => {
  test('refuse one workflow too many, also as a copy, and name the setting; what exists can be saved', async () => {
    const { id } = await createWorkflow()
    await createWorkflow()
    const second = workflow()
    expect((await call('createWorkflow', { body: second })).status).toBe(201)
    const refused = await call('createWorkflow', { body: workflow() })
    expect(refused).toMatchObject({ status: 409, error: { code: 'quota_exceeded' } })
    expect(refused.error.message).toMatch(/^There can be at most 3 workflows\. Delete some .* MAX_WORKFLOWS\.$/)
    const copy = await call('duplicateWorkflow', { params: { workflow_id: id }, body: { id: newId(), name: 'Copy' } })
    expect(copy.error.code).toBe('quota_exceeded')
    // A repeated request for one that exists.
    expect((await call('createWorkflow', { body: second })).status).toBe(201)
    expect((await call('deleteWorkflow', { params: { workflow_id: second.id } })).status).toBe(204)
    await createWorkflow()
  })

  test.each([
    ['saveTrigger', 'trigger_id', () => trigger],
    ['saveFile', 'file_id', () => file(newId())],
  ] as const)('refuse a part too many of one workflow: %s', async (operationId, name, body) => {
    const organization = await app.createOrganization()
    const owner = organization.owner
    const [first, other] = [newId(), newId()]
    for (const id of [first, other]) await app.call(owner, 'createWorkflow', { body: workflow(id) })
    const save = async (workflow_id: string) =>
      (await app.call(owner, operationId, { params: { workflow_id, [name]: newId() }, body: body() })).status
    const allowed = operationId === 'saveTrigger' ? 1 : 2
    for (let count = 0; count < allowed; count += 1) expect(await save(first)).toBe(200)
    expect(await save(first)).toBe(409)
    expect(await save(other)).toBe(200)
  })

  test('refuse files that are too large together, but none that gets smaller', async () => {
    const { owner } = await app.createOrganization()
    const { id: workflow_id } = workflow()
    await app.call(owner, 'createWorkflow', { body: workflow(workflow_id) })
    const params = { workflow_id, file_id: newId() }
    const saved = await app.call(owner, 'saveFile', { params, body: file('a', 'x'.repeat(900_000)) })
    expect(saved.status).toBe(200)
    const second = { params: { workflow_id, file_id: newId() }, body: file('b', 'é'.repeat(80_000)) }
    expect((await app.call(owner, 'saveFile', second)).error).toMatchObject({
      code: 'quota_exceeded',
      message: expect.stringContaining('1 MiB of files'),
    })
    const copy = { params: { workflow_id }, body: { id: newId(), name: 'Copy' } }
    expect((await app.call(owner, 'duplicateWorkflow', copy)).error.code).toBe('quota_exceeded')
    const { version } = (saved.body as { files: { version: string }[] }).files[0]!
    const smaller = { params, body: { ...file('a', 'x'.repeat(800_000)), version } }
    expect((await app.call(owner, 'saveFile', smaller)).status).toBe(200)
    const other = workflow()
    await app.call(owner, 'createWorkflow', { body: other })
    const elsewhere = { ...second, params: { ...second.params, workflow_id: other.id } }
    expect((await app.call(owner, 'saveFile', elsewhere)).status).toBe(200)
    // The version before has the larger file.
    const [newest, before] = (await app.call(owner, 'listWorkflowVersions', { params })).body.data
    const restored = { params: { ...params, version_id: before!.id }, body: { newest: newest!.number } }
    expect((await app.call(owner, 'restoreWorkflowVersion', restored)).error.code).toBe('quota_exceeded')
    const { version: stored } = (await app.call(owner, 'getFile', { params: elsewhere.params })).body
    await app.call(owner, 'deleteFile', { params: elsewhere.params, query: { version: stored } })
    expect((await app.call(owner, 'restoreWorkflowVersion', restored)).status).toBe(200)
  })

  test('refuse neither a copy without files nor a version of no more bytes, also beyond MAX_FILE_MIB', async () => {
    const { owner } = await app.createOrganization()
    const [empty, full] = [workflow(), workflow()]
    for (const body of [empty, full]) await app.call(owner, 'createWorkflow', { body })
    const params = { workflow_id: full.id, file_id: newId() }
    const saved = await app.call(owner, 'saveFile', { params, body: file('a') })
    const { version } = (saved.body as { files: { version: string }[] }).files[0]!
    const large = `INSERT INTO files (id, workflow_id, name, path, content)
      VALUES (gen_random_uuid(), $1, 'large', '{}', repeat('x', 1048576))`
    await app.db.pool.query(large, [full.id])
    await app.call(owner, 'saveFile', { params, body: { ...file('b'), version } })
    const [newest, before] = (await app.call(owner, 'listWorkflowVersions', { params })).body.data
    const restored = { params: { ...params, version_id: before!.id }, body: { newest: newest!.number } }
    expect((await app.call(owner, 'restoreWorkflowVersion', restored)).status).toBe(200)
    const copy = { params: { workflow_id: empty.id }, body: { id: newId(), name: 'Copy' } }
    expect((await app.call(owner, 'duplicateWorkflow', copy)).status).toBe(201)
  })

  test.each([
    ['createWorkflow', 3, () => ({ body: workflow() })],
    ['createSession', 1, () => ({ body: { id: newId() } })],
    ['createApiKey', 1, () => ({ body: keyIn() })],
    ['createUser', 1, () => ({ body: userIn() })],
  ] as const)('are not exceeded by several requests at once: %s', async (operationId, allowed, request) => {
    const { owner } = await app.createOrganization()
    const responses = await Promise.all(Array.from({ length: 6 }, () => app.call(owner, operationId, request())))
    expect(responses.filter(({ status }) => status < 300)).toHaveLength(allowed)
    expect(responses.filter(({ error }) => error?.code === 'quota_exceeded')).toHaveLength(6 - allowed)
  })
})
