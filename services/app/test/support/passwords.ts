import { argon2Sync } from 'node:crypto'
import { newId } from '@workflow-service/database'
import type { TestApp, TestOrganization, TestPerson } from './test-app.ts'

export const PASSWORD = 'orbit-velvet-cactus-41'
export const NEW_PASSWORD = 'lantern-gravel-tulip-97'

/** A hash of the password, as this release or an earlier one stores it. */
export function storedHash(password: string, [memory, passes] = [19_456, 2]): string {
  const nonce = Buffer.alloc(16, 7)
  const tag = argon2Sync('argon2id', { message: password, nonce, parallelism: 1, tagLength: 32, memory, passes })
  const [salt, hash] = [nonce, tag].map((bytes) => bytes.toString('base64').replace(/=+$/, ''))
  return `$argon2id$v=19$m=${memory},t=${passes},p=1$${salt}$${hash}`
}

export const PASSWORD_HASH = storedHash(PASSWORD)

/** What people do with each other, for tests of accounts, users and links. */
export function usePeople(app: TestApp) {
  const askForLink = (by: TestPerson, userId: string, body: { kind: string; email?: string }) =>
    app.call(by, 'createUserLink', { params: { user_id: userId }, body })
  const linkFor = async (...asked: Parameters<typeof askForLink>): Promise<string> => {
    const answer = await askForLink(...asked)
    if (answer.status !== 201) throw new Error(answer.text)
    return answer.body.url.split('#')[1]!
  }
  const createUser = async (
    { owner }: TestOrganization,
    role: string,
    email = `${newId()}@acme.test`,
  ): Promise<string> => {
    const id = newId()
    const body = { id, email, first_name: 'Grace', last_name: 'Hopper', role }
    const { status, text } = await app.call(owner, 'createUser', { body })
    if (status !== 201) throw new Error(text)
    return id
  }
  return {
    askForLink,
    createUser,
    linkFor,
    /** Adds a member with the password PASSWORD. */
    withPassword: async (organizationId: string, role: TestPerson['role'] = 'member'): Promise<TestPerson> => {
      const person = await app.createPerson(organizationId, role)
      const data = { passwordHash: PASSWORD_HASH }
      await app.db.prisma.account.update({ where: { id: person.accountId }, data })
      return person
    },
    signIn: async (email: string, password = PASSWORD): Promise<string | undefined> =>
      (await app.call(null, 'signIn', { body: { email, password } })).cookie,
    accept: (token: string, password = PASSWORD) => app.call(null, 'acceptLink', { body: { token, password } }),
    /** Invites the address to the organization, and returns the token. */
    invite: async (organization: TestOrganization, role: string, email?: string): Promise<string> =>
      await linkFor(organization.owner, await createUser(organization, role, email), { kind: 'invitation' }),
    saveUser: async (by: TestPerson, userId: string, change: object) => {
      const { body } = await app.call(by, 'listUsers', { query: { limit: 100 } })
      const { version } = body.data.find(({ id }) => id === userId)!
      return await app.call(by, 'saveUser', { params: { user_id: userId }, body: { ...change, version } })
    },
    isSignedIn: async (token: string): Promise<boolean> => (await app.call(token, 'getMe')).status === 200,
    isOpen: async (token: string): Promise<boolean> =>
      (await app.call(null, 'openLink', { body: { token } })).status === 200,
    /** The actions in the audit log of the organization, oldest first. */
    actionsIn: async ({ owner }: TestOrganization, target?: string): Promise<string[]> => {
      const { body } = await app.call(owner, 'listAuditEvents', { query: { limit: 100, target_id: target } })
      return body.data.map(({ action }) => action).toReversed()
    },
  }
}
