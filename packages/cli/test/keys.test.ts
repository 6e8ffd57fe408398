import { hashApiKey, parseApiKey } from '@workflow-service/database'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { createSetting, type Setting } from './support/setting.ts'
import { wf } from './support/wf.ts'

interface KeyJson {
  name: string
  key: string
  prefix: string
  scopes: string[]
  revoked_at: string | null
  expires_at: string | null
}

let setting: Setting
beforeAll(async () => {
  setting = await createSetting()
}, 60_000)
afterAll(async () => await setting.close())
beforeEach(async () => {
  await wf(setting.env, ['apply', await setting.file('m.yaml', { organization: { name: 'Acme' } })])
})
afterEach(async () => await setting.clear())

const keys = async (...args: string[]) => await wf(setting.env, ['keys', ...args])
const create = async (...args: string[]) => (await keys('create', ...args, '--json')).json() as KeyJson

describe('wf keys create', () => {
  test('makes a key of the right form, which is stored as its hash alone', async () => {
    const { key, prefix, name } = await create('ci')
    expect(parseApiKey(key)).toEqual({ prefix })
    const stored = await setting.db.prisma.apiKey.findFirstOrThrow({ where: { name } })
    expect(Buffer.from(stored.keySha256)).toEqual(hashApiKey(key))
    expect(JSON.stringify(stored)).not.toContain(key)
  })

  test('gives it everything unless --scopes says less, and no end unless --expires says one', async () => {
    expect(await create('all')).toMatchObject({ scopes: ['read', 'start'], expires_at: null })
    expect(await create('--name', 'less', '--scopes', 'read', '--expires', '2999-12-31')).toMatchObject({
      name: 'less',
      scopes: ['read'],
      expires_at: '2999-12-31T00:00:00.000Z',
    })
  })

  test('names a key by its prefix when nobody names it', async () => {
    const { name, prefix } = await create()
    expect(name).toBe(prefix)
  })

  test('shows the key to people, on a line of its own', async () => {
    const { stdout } = await keys('create', 'ci')
    expect(stdout).toMatch(/^wfk_\w{8}_\w{38}\nShown this once\. ci of Acme; may read, start; does not expire\.\n$/)
  })

  test('refuses a name that is taken', async () => {
    await create('ci')
    expect(await keys('create', 'ci')).toMatchObject({
      exitStatus: 1,
      stderr: 'Refused. Acme has a key named ci already, perhaps a revoked one: choose another name.\n',
    })
  })

  test.each([
    ['--scopes', 'write'],
    ['--expires', '2020-01-01'],
    ['--expires', 'soon'],
  ])('takes %s %s for bad usage', async (option, value) => {
    expect(await keys('create', 'ci', option, value)).toMatchObject({ exitStatus: 2 })
  })
})

describe('wf keys list', () => {
  test('shows every key without the key itself', async () => {
    const { key } = await create('ci')
    await create('old')
    await keys('revoke', 'old')
    const { stdout } = await keys('list')
    expect(stdout).toMatch(/^NAME {2}STATE .*\nci +active .*\nold +revoked /)
    expect(stdout).not.toContain(key)
    expect((await keys('list', '--json')).json()).toMatchObject([{ name: 'ci', revoked_at: null }, { name: 'old' }])
  })

  test('says how to make one where there is none', async () => {
    expect(await keys('list')).toMatchObject({
      exitStatus: 0,
      stdout: 'Acme has no API keys: wf keys create makes one.\n',
    })
  })
})

describe('wf keys revoke', () => {
  test.each<[string, (key: KeyJson) => string]>([
    ['name', ({ name }) => name],
    ['prefix', ({ prefix }) => prefix],
    ['whole key', ({ key }) => key],
  ])('finds the key by its %s', async (_what, which) => {
    const made = await create('ci')
    const revoked = (await keys('revoke', which(made), '--json')).json() as KeyJson
    expect(revoked).toMatchObject({ name: 'ci', revoked_at: expect.any(String) })
    const again = (await keys('revoke', which(made), '--json')).json() as KeyJson
    expect(again.revoked_at).toBe(revoked.revoked_at)
  })

  test('refuses a key that is not there', async () => {
    expect(await keys('revoke', 'ci')).toMatchObject({
      exitStatus: 1,
      stderr: 'Refused. Acme has no such key: wf keys list shows them.\n',
    })
  })
})

describe('--organization', () => {
  test('must be given when there are several', async () => {
    await wf(setting.env, ['apply', await setting.file('m.yaml', { organization: { name: 'Other' } })])
    const { exitStatus, stderr } = await keys('list')
    expect(exitStatus).toBe(1)
    expect(stderr).toMatch(/There are several organizations: say which one with --organization ID\.\n.*Acme\n.*Other\n/)
    expect(await keys('list', '--organization', 'Other')).toMatchObject({ exitStatus: 0 })
    const { id } = await setting.db.prisma.organization.findFirstOrThrow({ where: { name: 'Acme' } })
    expect(await keys('list', '--organization', id.toUpperCase())).toMatchObject({ exitStatus: 0 })
  })

  test.each(['Nobody', '01890a5d-ac96-774b-bcce-b302099a8057'])('refuses %s, which is not there', async (which) => {
    expect(await keys('list', '--organization', which)).toMatchObject({
      exitStatus: 1,
      stderr: `Refused. There is no organization ${which}.\n`,
    })
  })

  test('is missing an organization where there is none at all', async () => {
    await setting.clear()
    expect(await keys('list')).toMatchObject({
      exitStatus: 1,
      stderr: 'Refused. There is no organization yet: wf apply FILE makes one.\n',
    })
  })
})
