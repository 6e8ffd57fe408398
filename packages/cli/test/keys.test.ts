import { hashApiKey, prefixOfApiKey } from '@workflow-service/database'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { useCliEnvironment } from './support/cli-environment.ts'
import { wf } from './support/wf.ts'

interface KeyJson {
  name: string
  key: string
  prefix: string
  scopes: string[]
  revoked_at: string | null
  expires_at: string | null
}

const environment = useCliEnvironment()
beforeEach(async () => {
  await environment.apply({ organization: { name: 'Acme' } })
})
afterEach(async () => await environment.clear())

const keys = async (...args: string[]) => await wf(environment.env, ['keys', ...args])
const create = async (...args: string[]) => (await keys('create', ...args, '--json')).json() as KeyJson

describe('wf keys create', () => {
  test('creates a key of the documented form and stores only its hash', async () => {
    const { key, prefix, name } = await create('ci')
    expect(prefixOfApiKey(key)).toBe(prefix)
    const stored = await environment.db.prisma.apiKey.findFirstOrThrow({ where: { name } })
    expect(Buffer.from(stored.keySha256)).toEqual(hashApiKey(key))
    expect(JSON.stringify(stored)).not.toContain(key)
  })

  test('gives all scopes unless --scopes is set, and no expiry unless --expires is set', async () => {
    expect(await create('all')).toMatchObject({ scopes: ['read', 'start'], expires_at: null })
    expect(await create('--name', 'less', '--scopes', 'read', '--expires', '2999-12-31')).toMatchObject({
      name: 'less',
      scopes: ['read'],
      expires_at: '2999-12-31T00:00:00.000Z',
    })
  })

  test('uses the prefix as the default name', async () => {
    const { name, prefix } = await create()
    expect(name).toBe(prefix)
  })

  test('prints the key on its own line', async () => {
    const { stdout } = await keys('create', 'ci')
    expect(stdout).toMatch(
      /^wfk_\w{8}_\w{38}\nShown only this once\. Name: ci; organization: Acme; scopes: read, start; does not expire\.\n$/,
    )
  })

  test('exits with 2 on two names, and on a name of several lines', async () => {
    expect(await keys('create', '--name', 'x6', 'x7')).toMatchObject({
      exitStatus: 2,
      stderr: 'Error: The key is named twice: x6 by --name, and x7. Give one name.\n',
    })
    for (const name of ['two\nlines', 'a\tb', 'a\u0000b']) {
      expect(await keys('create', name)).toMatchObject({ exitStatus: 2, stderr: expect.stringContaining('one line') })
    }
    expect((await keys('list', '--json')).json()).toEqual([])
  })

  test('rejects a name that exists', async () => {
    await create('ci')
    expect(await keys('create', 'ci')).toMatchObject({
      exitStatus: 1,
      stderr: 'Error: Acme already has a key named ci (it may be revoked). Choose another name.\n',
    })
  })

  test.each([
    ['--scopes', 'write'],
    ['--expires', '2020-01-01'],
    ['--expires', 'soon'],
  ])('exits with 2 on %s %s', async (option, value) => {
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

  test('says how to create a key when there are none', async () => {
    expect(await keys('list')).toMatchObject({
      exitStatus: 0,
      stdout: 'Acme has no API keys. Create one with wf keys create.\n',
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

  test('rejects an unknown key', async () => {
    expect(await keys('revoke', 'ci')).toMatchObject({
      exitStatus: 1,
      stderr: 'Error: Acme has no such key. List its keys with wf keys list.\n',
    })
  })
})

describe('--organization', () => {
  test('is required when there are several organizations', async () => {
    await environment.apply({ organization: { name: 'Other' } })
    const { exitStatus, stderr } = await keys('list')
    expect(exitStatus).toBe(1)
    expect(stderr).toMatch(/There are several organizations\. Choose one with --organization ID\.\n.*Acme\n.*Other\n/)
    expect(await keys('list', '--organization', 'Other')).toMatchObject({ exitStatus: 0 })
    const { id } = await environment.db.prisma.organization.findFirstOrThrow({ where: { name: 'Acme' } })
    expect(await keys('list', '--organization', id.toUpperCase())).toMatchObject({ exitStatus: 0 })
  })

  test.each(['Unknown', '01890a5d-ac96-774b-bcce-b302099a8057'])(
    'rejects the unknown organization %s',
    async (name) => {
      expect(await keys('list', '--organization', name)).toMatchObject({
        exitStatus: 1,
        stderr: `Error: There is no organization ${name}.\n`,
      })
    },
  )

  test('says how to create an organization when there is none', async () => {
    await environment.clear()
    expect(await keys('list')).toMatchObject({
      exitStatus: 1,
      stderr: 'Error: There is no organization yet. Create one with wf apply FILE.\n',
    })
  })
})
