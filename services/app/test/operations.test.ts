import { inspect, isDeepStrictEqual } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import type { AppOperation, AppOperationId, Role, WorkflowDetailOut } from '@workflow-service/contract'
import { APP_OPERATIONS, isOpen } from '@workflow-service/contract/app'
import { ROLES } from '@workflow-service/contract'
import { AUDIT_ACTIONS, createSetupLink, hashToken, newId, recordModels } from '@workflow-service/database'
import { triggerBody } from '@workflow-service/testkit'
import { PASSWORD, PASSWORD_HASH } from './support/passwords.ts'
import {
  type AppCall,
  keyIn,
  lookupIn,
  sourceIn,
  type TestOrganization,
  type TestPerson,
  useDataApp,
  userIn,
} from './support/use-app.ts'

const data = useDataApp()

/** A request that works for a person of an allowed role. */
interface Sample extends AppCall {
  /** The status of success, if it is not that of the operation. */
  readonly status?: number
}

/** What a sample is about: the things of `organization`, used by `person`. */
interface World {
  readonly organization: TestOrganization
  readonly person: TestPerson
}

type MakeSample = (world: World) => Sample | Promise<Sample>

/** A workflow, and ids for a new part of it. */
async function workflowOf({ organization }: World) {
  const id = await data.createWorkflow('Orders', null, organization.id)
  const params = { workflow_id: id, trigger_id: newId(), file_id: newId(), case_id: newId() }
  const { body } = await data.call(organization.owner, 'getWorkflow', { params })
  return { params, workflow: body }
}

/** A request about a workflow with a body made of it. */
function inWorkflow(bodyFor: (workflow: WorkflowDetailOut, world: World) => object): MakeSample {
  return async (world) => {
    const { params, workflow } = await workflowOf(world)
    return { params, body: bodyFor(workflow, world) }
  }
}

const TRIGGER = triggerBody()
const FILE = { name: 'a.txt', path: [], content: 'A', version: null }

async function savedTrigger(world: World) {
  const { params } = await workflowOf(world)
  const { body } = await data.call(world.organization.owner, 'saveTrigger', { params, body: TRIGGER })
  return { params, query: { version: body.triggers[0]!.version } }
}

async function savedFile(world: World) {
  const { params } = await workflowOf(world)
  const { body } = await data.call(world.organization.owner, 'saveFile', { params, body: FILE })
  return { params, query: { version: body.files[0]!.version } }
}

const CASE = { name: 'An order', context: 'Total: 5', expected: [], version: null }
const TRIED = { context: 'Total: 5', session_id: null }
const evaluationIn = () => ({ id: newId(), model: null, version_id: null, description: null, rules: null })

async function savedCase(world: World) {
  const { params } = await workflowOf(world)
  const { body } = await data.call(world.organization.owner, 'saveCase', { params, body: CASE })
  return { params, query: { version: body.version } }
}

async function startedEvaluation(world: World) {
  const { params } = await savedCase(world)
  const { body } = await data.call(world.organization.owner, 'startEvaluation', { params, body: evaluationIn() })
  return { params: { ...params, evaluation_id: body.id } }
}

async function versionOf(world: World) {
  const { params } = await savedTrigger(world)
  const { body } = await data.call(world.organization.owner, 'listWorkflowVersions', { params })
  // Without the trigger: a restore of the newest one would change nothing.
  const [newest, oldest] = [body.data[0], body.data.at(-1)]
  return { params: { ...params, version_id: oldest?.id ?? '' }, body: { newest: newest?.number ?? 0 } }
}

async function savedSource({ organization }: World) {
  return { params: { source_id: await data.saveSource({}, organization) } }
}

async function savedLookup({ organization }: World) {
  return { params: { lookup_id: await data.saveLookup(undefined, organization) } }
}

const MODEL_KEY = 'sk-a-key-of-an-organization'
const MODEL = { name: 'fast', model: 'openai:gpt', is_default: true, organization_ids: [], reads: [] }
const offerModel = () => recordModels(data.app.db, [{ ...MODEL, data_region: null, currency: null, fallback: null }])

async function savedModelKey({ organization }: World) {
  await offerModel()
  const body = { model: 'fast', key: MODEL_KEY }
  const saved = await data.call(organization.admin, 'saveModelKey', { body })
  return { params: { model_key_id: saved.body.data[0]!.id } }
}

/** A payload delivery with an outcome. */
async function deliveryOf(world: World): Promise<string> {
  const { params } = await savedSource(world)
  return await data.addDelivery(params.source_id)
}

async function withNoticeWebhook({ organization }: World) {
  const body = { url: data.endpoint.url, signing_secret: null }
  await data.call(organization.owner, 'saveNoticeWebhook', { body })
  return {}
}

async function resendJobOf(world: World): Promise<string> {
  // Two, one a second: the application's timer does not finish it at once.
  const body = { id: newId(), ids: [await deliveryOf(world), await deliveryOf(world)], per_second: 1 }
  return (await data.call(world.person, 'createResendJob', { body })).body.id
}

async function runOf({ organization }: World, run: Parameters<typeof data.createRun>[1] = {}): Promise<string> {
  return await data.createRun(await data.createWorkflow('Orders', null, organization.id), run)
}

async function approvalOf(world: World) {
  return { delivery_id: await data.createApproval(await runOf(world, { status: 'waiting' })) }
}

async function sessionOf({ organization }: World): Promise<string> {
  const { body } = await data.call(organization.owner, 'createSession', { body: { id: newId() } })
  return body.id
}

async function userOf({ organization }: World) {
  const body = userIn({ role: 'member' })
  const created = await data.call(organization.owner, 'createUser', { body })
  return { params: { user_id: body.id }, user: created.body }
}

const givePassword = ({ accountId }: TestPerson) =>
  data.app.db.prisma.account.update({ where: { id: accountId }, data: { passwordHash: PASSWORD_HASH } })

async function personWithPassword({ organization }: World): Promise<TestPerson> {
  const person = await data.app.createPerson(organization.id, 'member')
  await givePassword(person)
  return person
}

async function invitationOf(world: World): Promise<string> {
  const { params } = await userOf(world)
  const { body } = await data.call(world.organization.owner, 'createUserLink', { params, body: { kind: 'invitation' } })
  return body.url.split('#')[1]!
}

/** Makes what the last parameter of a path names, with the version that a deletion sends. */
const THINGS: Readonly<Record<string, (world: World) => Promise<Pick<Sample, 'params' | 'query'>>>> = {
  sign_in_id: async ({ person }) => ({
    params: { sign_in_id: (await data.call(person, 'listSignIns')).body.data[0]!.id },
  }),
  workflow_id: workflowOf,
  trigger_id: savedTrigger,
  file_id: savedFile,
  case_id: savedCase,
  evaluation_id: startedEvaluation,
  version_id: versionOf,
  trial_id: async (world) => {
    const { params } = await workflowOf(world)
    const id = newId()
    await data.call(world.person, 'tryWorkflow', { params, body: { id, ...TRIED } })
    return { params: { ...params, trial_id: id } }
  },
  source_id: savedSource,
  lookup_id: savedLookup,
  model_key_id: savedModelKey,
  delivery_id: async (world) => ({ params: { delivery_id: await deliveryOf(world) } }),
  resend_job_id: async (world) => ({ params: { resend_job_id: await resendJobOf(world) } }),
  run_id: async (world) => ({ params: { run_id: await runOf(world) } }),
  session_id: async (world) => ({ params: { session_id: await sessionOf(world) } }),
  api_key_id: async ({ organization }) => {
    const body = keyIn()
    await data.call(organization.owner, 'createApiKey', { body })
    return { params: { api_key_id: body.id } }
  },
  user_id: userOf,
}

type WithBody = {
  [Id in AppOperationId]: (typeof APP_OPERATIONS)[Id] extends { readonly body: object } ? Id : never
}[AppOperationId]

/** A request that works: with the parameters and the version of a thing that it names, and what `SAMPLES` adds. */
async function sampleOf(id: AppOperationId, world: World): Promise<Sample> {
  const { path, query } = APP_OPERATIONS[id] as AppOperation
  const sample = (await SAMPLES[id]?.(world)) ?? {}
  const name = namesIn(path).at(-1)
  if (name === undefined || sample.params) return sample
  const make = THINGS[name]
  if (!make) throw new Error(`Add to THINGS how to make what {${name}} names`)
  const thing = await make(world)
  const sendsVersion = JSON.stringify(query)?.includes('"version"')
  return { params: thing.params, ...(sendsVersion ? { query: thing.query } : {}), ...sample }
}

const namesIn = (path: string) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)

/** What is more than a thing: a new operation with a body does not compile without one. */
const SAMPLES: Readonly<Record<WithBody, MakeSample> & Partial<Record<AppOperationId, MakeSample>>> = {
  setUp: async () => {
    const person = { name: 'Ada', email: `${newId()}@globex.test`, password: PASSWORD }
    return { body: { token: await createSetupLink(data.app.db, null), organization_name: 'Globex', ...person } }
  },
  signIn: async (world) => ({ body: { email: (await personWithPassword(world)).email, password: PASSWORD } }),
  // Not configured here; oidc.test.ts has a provider.
  startOidc: () => ({ status: 404 }),
  finishOidc: () => ({ status: 404 }),
  openLink: async (world) => ({ body: { token: await invitationOf(world) } }),
  acceptLink: async (world) => ({ body: { token: await invitationOf(world), password: PASSWORD } }),

  saveMe: () => ({ body: { name: 'Ada' } }),
  changePassword: () => ({ body: { new_password: PASSWORD } }),
  switchOrganization: ({ organization }) => ({ body: { organization_id: organization.id } }),
  confirmPassword: async ({ person }) => {
    await givePassword(person)
    return { body: { password: PASSWORD } }
  },

  search: () => ({ query: { q: 'orders' } }),

  createWorkflow: () => ({ body: { id: newId(), name: 'Orders', description: 'Do it.', scope: 'company_wide' } }),
  saveWorkflow: inWorkflow(({ version }) => ({ name: 'New', description: 'Do it.', scope: 'company_wide', version })),
  duplicateWorkflow: () => ({ body: { id: newId(), name: 'A copy' } }),
  setWorkflowActive: () => ({ body: { is_active: false } }),
  saveAutoRun: inWorkflow(({ auto_run: { version } }) => ({ enabled: true, frequency: 'daily', version })),
  saveWorkflowAgent: inWorkflow(({ agent: { version, ...values } }) => ({ ...values, model: 'builtin', version })),
  saveWorkflowUsers: inWorkflow(({ users_version: version }, { organization: { member } }) => ({
    user_ids: [member.userId],
    version,
  })),
  saveTrigger: inWorkflow(() => TRIGGER),
  saveFile: inWorkflow(() => FILE),
  restoreWorkflowVersion: versionOf,
  startScheduled: async (world) => {
    const { params } = await workflowOf(world)
    await data.call(world.organization.owner, 'setWorkflowActive', { params, body: { is_active: true } })
    return { params, body: { id: newId() } }
  },
  checkRules: () => ({ body: { content: 'deliveries: 5' } }),
  tryWorkflow: () => ({ body: { id: newId(), ...TRIED } }),
  saveCase: inWorkflow(() => CASE),
  startEvaluation: async (world) => ({ params: (await savedCase(world)).params, body: evaluationIn() }),
  startWorkflow: async (world) => ({
    params: (await savedTrigger(world)).params,
    body: { id: newId(), context: 'Order 17', session_id: null },
  }),

  saveWebhookSource: async (world) => {
    const { params } = await savedSource(world)
    const { body } = await data.call(world.organization.owner, 'getWebhookSource', { params })
    return { params, body: sourceIn({ endpoint_url: data.endpoint.url, version: body.version }) }
  },
  saveWebhookSourceSettings: () => ({ body: { approval: 'always', version: '1' } }),
  resumeWebhookSource: async (world) => {
    const sample = await savedSource(world)
    await data.call(world.organization.owner, 'pauseWebhookSource', sample)
    return sample
  },
  saveInstructions: async ({ organization }) => {
    const { version } = (await data.call(organization.owner, 'getInstructions')).body
    return { body: { text: `Be brief. ${newId()}`, version } }
  },
  saveModelKey: async () => {
    await offerModel()
    return { body: { model: 'fast', key: MODEL_KEY } }
  },
  saveLookup: () => ({ body: lookupIn({ url: data.endpoint.url, version: '1' }) }),
  testLookup: () => ({ body: { tool: 'find', arguments: {} } }),
  resendDelivery: async (world) => ({
    params: { delivery_id: newId() },
    body: { resend_of: await deliveryOf(world) },
  }),

  decideApprovals: async (world) => {
    const { delivery_id: id } = await approvalOf(world)
    return { body: { decision: 'declined', delivery_ids: [id], reason: null } }
  },
  approveDelivery: async (world) => ({ params: await approvalOf(world), body: {} }),
  declineDelivery: async (world) => ({ params: await approvalOf(world), body: { reason: 'The total is wrong.' } }),

  saveNoticeWebhook: () => ({ body: { url: data.endpoint.url, signing_secret: 'a signing secret of notices' } }),
  deleteNoticeWebhook: withNoticeWebhook,
  testNoticeWebhook: withNoticeWebhook,
  saveMyNotices: () => ({ body: { kinds: ['failures'] } }),
  markAttentionDone: async (world) => {
    const { source_id: id } = (await savedSource(world)).params
    await data.addDelivery(id, { outcome: 'rejected' })
    const until = new Date(Date.now() + 1_000).toISOString()
    return { body: { kind: 'delivery_not_accepted', id, code: 'rejected', status: 204, until } }
  },
  previewResends: async (world) => ({ body: { ids: [await deliveryOf(world)], per_second: 1 } }),
  createResendJob: async (world) => ({ body: { id: newId(), ids: [await deliveryOf(world)], per_second: 1 } }),
  cancelRun: async (world) => ({ params: { run_id: await runOf(world, { status: 'queued' }) } }),
  cancelQueuedRuns: async ({ organization }) => {
    const id = await data.createWorkflow('Orders', null, organization.id)
    await data.createRun(id, { status: 'queued' })
    return { body: { kind: 'workflow', id } }
  },
  getRulesDraft: async (world) => ({
    params: { run_id: await runOf(world, { status: 'failed', error: 'no_destination: none' }) },
  }),
  createSession: () => ({ body: { id: newId() } }),

  createApiKey: () => ({ body: keyIn() }),
  createUser: () => ({ body: userIn() }),
  saveUser: async (world) => {
    const { params, user } = await userOf(world)
    return { params, body: { first_name: 'Other', version: user.version } }
  },
  createUserLink: () => ({ body: { kind: 'invitation' } }),
  saveOrganization: async ({ organization }) => {
    const { body } = await data.call(organization.owner, 'getOrganization')
    return { body: { name: `Acme ${newId()}`, version: body.version } }
  },
  deleteOrganization: async ({ organization }) => {
    const { body } = await data.call(organization.owner, 'getOrganization')
    return { body: { name: body.name } }
  },
}

/**
 * Where the caller chooses the id of the thing, an edit of a thing of another organization is answered as one of a
 * missing thing.
 */
const CHOSEN_IDS: readonly AppOperationId[] = ['saveWebhookSource', 'saveLookup']
/** Operations on a workflow or on a run, which is seen by those who see its workflow. */
const OF_WORKFLOW = /\{(?:workflow|run)_id\}/
/** Operations that read what the same person has made. */
const OF_PERSON: readonly AppOperationId[] = ['getTrial', 'getResendJob']
/** Operations whose body names the thing. */
const NAMED_IN_BODY: readonly AppOperationId[] = ['switchOrganization', 'resendDelivery']

const operations = Object.values<AppOperation>(APP_OPERATIONS) as (AppOperation & { id: AppOperationId })[]
const forPeople = operations.filter((operation) => !isOpen(operation))
/** Parameters for requests that are refused before they are read. */
const NAMES = operations.flatMap(({ path }) => namesIn(path))
const PARAMS: AppCall = { params: Object.fromEntries(NAMES.map((name) => [name, newId()])) }

/** Whether the table, from which OPERATIONS.md is generated, lets them call the operation. */
function mayCall(operation: AppOperation, caller: Role | 'stranger'): boolean {
  const { access } = operation
  if (isOpen(operation) || caller === 'stranger') return isOpen(operation)
  return access === 'signed_in' || ROLES.indexOf(caller) <= ROLES.indexOf(access as Role)
}

/** Calls the operation and returns status and error code. A stream ends after its headers. */
async function outcome(who: TestPerson | null, id: AppOperationId, call: Sample): Promise<string> {
  if (id === 'streamEvents' && who) {
    const ending = new AbortController()
    const headers = { cookie: `__Host-session=${who.token}`, 'sec-fetch-site': 'same-origin' }
    const { status } = await fetch(`${data.app.url}/app/events`, { headers, signal: ending.signal })
    ending.abort()
    return String(status)
  }
  const { status, error } = await data.call(who, id, call)
  return status < 400 || status === call.status ? String(status) : `${status} ${error.code}`
}

/** Rows that only people of the organization change: those of deleted workflows go in the background. */
const rowsOf = ({ id }: TestOrganization) =>
  Promise.all(
    ['api_keys', 'lookups', 'model_keys', 'sessions', 'users', 'webhook_sources', 'workflows'].map(
      async (table) =>
        (
          await data.app.db.pool.query(
            `SELECT * FROM ${table} AS t WHERE organization_id = $1 AND to_jsonb(t) ->> 'deleted_at' IS NULL ORDER BY id`,
            [id],
          )
        ).rows,
    ),
  )

/** What a person of another organization gets, and a member who does not see the workflow, where there is one. */
async function outcomesOfUnseen(
  operation: AppOperation,
  id: AppOperationId,
  organization: TestOrganization,
  unused: Sample,
): Promise<string[]> {
  const outcomes: string[] = []
  if (isOpen(operation)) return outcomes
  if (operation.params || NAMED_IN_BODY.includes(id)) {
    const before = await rowsOf(organization)
    outcomes.push(await outcome(data.app.organization.owner, id, unused))
    const after = await rowsOf(organization)
    if (!isDeepStrictEqual(after, before)) outcomes.push(`changed from ${inspect(before)} to ${inspect(after)}`)
  }
  if (operation.access === 'member' && OF_WORKFLOW.test(operation.path)) {
    const { member } = organization
    const own = OF_PERSON.includes(id) ? await sampleOf(id, { organization, person: member }) : unused
    await data.app.db.pool.query(
      `WITH hidden AS (UPDATE workflows SET scope = 'only_me' WHERE organization_id = $1 RETURNING id)
       DELETE FROM workflow_users USING hidden WHERE workflow_id = hidden.id`,
      [organization.id],
    )
    outcomes.push(await outcome(member, id, own))
  }
  return outcomes
}

/** Operations that have succeeded in a test of this run: `-t` leaves some out. */
const succeeded = new Set<AppOperationId>()

describe('Every operation', () => {
  test.each(operations.map((operation) => [operation.id, operation] as const))(
    '%s works for those whom its row names, for no others, and for nothing that the caller does not see',
    async (id, operation) => {
      const organization = await data.app.createOrganization()
      // Reads and refused callers leave it as it is.
      const unused = await sampleOf(id, { organization, person: organization.owner })
      for (const caller of ['stranger', ...ROLES.toReversed()] as const) {
        const who = caller === 'stranger' ? null : organization[caller]
        const isAllowed = mayCall(operation, caller)
        const isUnchanged = !isAllowed || (operation.method === 'get' && !OF_PERSON.includes(id))
        const sample = isUnchanged ? unused : await sampleOf(id, { organization, person: who ?? organization.owner })
        const refused = who === null ? '401 unauthorized' : '403 forbidden_for_role'
        const expected = isAllowed ? String(sample.status ?? operation.success.status) : refused
        expect([caller, await outcome(who, id, sample)]).toEqual([caller, expected])
        if (isAllowed) succeeded.add(id)
        if (operation.access !== 'link') continue
        const unknown = { ...sample, body: { ...(sample.body as object), token: newId() } }
        expect([caller, await outcome(who, id, unknown)]).toEqual([caller, '409 link_not_usable'])
      }
      const missing = CHOSEN_IDS.includes(id) ? '409 id_taken' : '404 not_found'
      for (const found of await outcomesOfUnseen(operation, id, organization, unused)) expect(found).toBe(missing)
    },
  )

  test.each([
    ['decideApprovals', { decided: 0 }],
    ['previewResends', { total: 0, sources: [] }],
    ['createResendJob', { code: 'not_resendable' }],
    ['markAttentionDone', { done: 0 }],
    ['cancelQueuedRuns', { cancelled: 0 }],
  ] as const)('%s does nothing to what its body names of another organization', async (id, expected) => {
    const [organization, other] = [await data.app.createOrganization(), await data.app.createOrganization()]
    const sample = await sampleOf(id, { organization, person: organization.owner })
    const { body, error } = await data.call(other.owner, id, sample)
    expect({ ...body, code: error?.code }).toMatchObject(expected)
  })

  test('A request about a workflow names no user, session, run, trial or version of another organization', async () => {
    const [organization, other] = [await data.app.createOrganization(), await data.app.createOrganization()]
    const theirs = { organization, person: organization.owner }
    const { params, workflow } = await workflowOf({ organization: other, person: other.owner })
    await data.call(other.owner, 'saveCase', { params: { ...params, case_id: newId() }, body: CASE })
    const { body: trial } = await data.call(organization.owner, 'tryWorkflow', {
      params: (await workflowOf(theirs)).params,
      body: { id: newId(), context: 'Total: 5', session_id: null },
    })
    const [session_id, run_id] = [await sessionOf(theirs), await runOf(theirs)]
    const { params: version } = await versionOf(theirs)
    const foreign: [AppOperationId, object, string][] = [
      ['tryWorkflow', { id: newId(), context: 'Total: 5', session_id }, 'Session not found.'],
      ['tryWorkflow', { id: trial.id, context: 'Total: 5', session_id: null }, 'This id is taken.'],
      ['startWorkflow', { id: newId(), context: 'Total: 5', session_id }, 'session_id'],
      ['saveWorkflowUsers', { user_ids: [organization.member.userId], version: workflow.users_version }, 'user_ids.0'],
      ['startEvaluation', { ...evaluationIn(), version_id: version.version_id }, 'Version not found.'],
      ['saveCase', { name: 'A case', of: { run_id }, version: null }, 'of.run_id'],
      ['saveCase', { name: 'A case', of: { trial_id: trial.id }, version: null }, 'of.trial_id'],
    ]
    await data.call(other.owner, 'saveTrigger', { params, body: TRIGGER })
    await data.call(other.owner, 'setWorkflowActive', { params, body: { is_active: true } })
    for (const [id, body, refused] of foreign) {
      const { status, error } = await data.call(other.owner, id, { params: { ...params, case_id: newId() }, body })
      expect([id, status, error?.message]).toEqual([id, expect.any(Number), expect.stringContaining(refused)])
    }
  })

  test('to read shows nothing that belongs to another organization', async () => {
    const [organization, other] = [await data.app.createOrganization(), await data.app.createOrganization()]
    const world = { organization, person: organization.owner }
    await savedSource(world)
    const { params } = await userOf(world)
    const foreign = [
      organization.id,
      organization.owner.userId,
      params.user_id,
      await runOf(world),
      await sessionOf(world),
    ]
    const lists = forPeople.filter(({ id, method, params: ids }) => method === 'get' && !ids && id !== 'streamEvents')
    for (const { id } of lists) {
      const { text } = await data.call(
        other.owner,
        id,
        await sampleOf(id, { organization: other, person: other.owner }),
      )
      expect([id, foreign.filter((each) => text.includes(each))]).toEqual([id, []])
    }
  })

  test('answers 401 to a one-time link, to ended sign-ins, and to people who have lost their role', async () => {
    const organization = await data.app.createOrganization()
    const { token } = organization.member
    const without = [organization.admin, await data.app.createPerson(organization.id, 'admin')]
    await data.app.db.pool.query('UPDATE users SET role = NULL WHERE id = $1', [without[0]!.userId])
    await data.app.db.pool.query('UPDATE users SET deactivated_at = now() WHERE id = $1', [without[1]!.userId])
    const link = await invitationOf({ organization, person: organization.owner })
    const where = { accountId: organization.member.accountId }
    await data.app.db.prisma.signIn.updateMany({ where, data: { expiresAt: new Date(0) } })
    for (const [index, { id }] of forPeople.entries()) {
      for (const who of index === 0 ? ['unknown', token, link, ...without] : [without[0]!]) {
        const { status, error } = await data.app.call(who, id, PARAMS)
        expect([id, status, error?.code]).toEqual([id, 401, 'unauthorized'])
      }
    }
  })

  test('refuses a change that another site may have sent, and a stream that another site opens', async () => {
    const changing = operations.filter(({ method }) => method !== 'get').map(({ id }) => id)
    const sent: [AppOperationId, Record<string, string | undefined>][] = [
      ['signOut', { 'content-type': undefined }],
      ['signOut', { 'sec-fetch-site': 'same-site' }],
      ['signOut', { 'sec-fetch-site': 'none' }],
      ['signOut', { 'sec-fetch-site': undefined }],
      ['signOut', { 'sec-fetch-site': undefined, origin: 'https://attacker.example' }],
    ]
    for (const id of [...changing, 'streamEvents'] as const) sent.push([id, { 'sec-fetch-site': 'cross-site' }])
    for (const id of changing) sent.push([id, { 'content-type': 'text/plain' }])
    for (const [id, headers] of sent) {
      const { status, error } = await data.app.call('owner', id, { ...PARAMS, headers })
      expect([id, headers, status, error.code]).toEqual([id, headers, 403, 'cross_site_request'])
    }
  })

  test('accepts the Origin of APP_URL from a browser without Sec-Fetch-Site', async () => {
    const { member } = await data.app.createOrganization()
    const headers = { 'sec-fetch-site': undefined, origin: 'http://localhost:8083' }
    expect((await data.app.call(member, 'signOut', { headers })).status).toBe(204)
  })

  test('leaves no password, token, key or signing secret in the audit log or the logs', async () => {
    const { app } = data
    const { member } = await app.createOrganization()
    expect((await app.call(member, 'deleteOrganization', PARAMS)).status).toBe(403)
    for (const { id } of operations.filter((operation) => !succeeded.has(operation.id))) {
      const organization = await app.createOrganization()
      await outcome(organization.owner, id, await sampleOf(id, { organization, person: organization.owner }))
    }
    const secrets = [...app.secrets, PASSWORD, MODEL_KEY, String(sourceIn()['signing_secret'])]
    const sql = 'SELECT row_to_json(e)::text AS event FROM audit_events e'
    const { rows } = await app.db.pool.query<{ event: string }>(sql)
    const actions = new Set(rows.map(({ event }) => (JSON.parse(event) as { action: string }).action))
    const elsewhere = [
      'budget.nearly_spent',
      'manifest.applied',
      'workflow.activated',
      'account.sign_in_failed',
      'account.confirm_failed',
      'delivery.expired',
      'delivery.deleted',
      'run.deleted',
      'user.erased',
    ]
    expect([...actions].toSorted()).toEqual(AUDIT_ACTIONS.filter((action) => !elsewhere.includes(action)).toSorted())
    const text = [...rows.map(({ event }) => event), ...app.logLines.map((line) => JSON.stringify(line))].join('\n')
    const forms = secrets.flatMap((secret) => {
      const hash = hashToken(secret)
      return [secret, hash.toString('hex'), hash.toString('base64url'), hash.toString('base64')]
    })
    expect(forms.filter((form) => text.includes(form))).toEqual([])
  })
})
