import { type AppUserOut, compile, LINK_HOURS, type Role, UUID_PATTERN } from '@workflow-service/contract'
import { Email } from '@workflow-service/contract/app'
import {
  createSetupLink,
  createUserLink,
  findAccountByEmail,
  findAccountByUser,
  findUserByEmail,
  findUserById,
  listOrganizations,
  listUsers,
  type NewUserLink,
  operatorOf,
  saveUser,
} from '@workflow-service/database'
import type { CommonOptions } from '../cli-command.ts'
import { type CommandResult, listResult } from '../command-result.ts'
import type { OperatorContext, OrganizationContext } from '../cli-context.ts'
import { CliError, UsageError } from '../cli-error.ts'
import { findOrganization } from './find.ts'
import { paint, timeColumn } from '../terminal.ts'

const isEmail = compile(Email)

/** More than any organization has. */
const MAX_USERS = 100_000

export async function list({ db, organization }: OrganizationContext): Promise<CommandResult> {
  return listResult(
    await listUsers(db, { organizationId: organization.id, memberId: null }, { limit: MAX_USERS }),
    [
      { title: 'EMAIL', value: ({ email }) => email, cut: 'name' },
      { title: 'ROLE', value: ({ role }) => role ?? 'none' },
      { title: 'STATE', value: ({ state }) => state, colour: ({ state }) => (state === 'active' ? 'green' : 'dim') },
      timeColumn('LAST SEEN', ({ last_seen_at: time }) => time),
      { title: 'NAME', value: ({ first_name, last_name }) => `${first_name} ${last_name}`.trim() },
      { title: 'ID', value: ({ id }) => id },
    ],
    `${organization.name} has no users. Make an owner with wf setup-link, or apply a manifest with users.`,
    toJson,
  )
}

export async function setRole(
  { db, organization }: OrganizationContext,
  named: string,
  wanted: Role | 'none',
): Promise<CommandResult> {
  const find = UUID_PATTERN.test(named) ? findUserById : findUserByEmail
  const user = await find(db, organization.id, named)
  if (!user) {
    throw new CliError(`${organization.name} has no user ${named}. Add it in the application or in a manifest.`)
  }
  const role = wanted === 'none' ? null : wanted
  const change = { role, version: user.version }
  const result =
    role === user.role
      ? { kind: 'saved' as const, user }
      : await saveUser(db, user.id, change, () => {}, operatorOf(organization.id))
  if (result === 'last_owner') {
    throw new CliError(
      `${user.email} is the last owner of ${organization.name}. Make another one first: wf setup-link.`,
    )
  }
  if (result?.kind !== 'saved') throw new CliError(`${user.email} was changed meanwhile. Try again.`)
  const advice =
    role !== null && ['no_access', 'invited'].includes(result.user.state)
      ? ' An admin can now make an invitation link in the application.'
      : ''
  return {
    json: toJson(result.user),
    text: () => `${user.email} ${role === null ? 'has no role and cannot sign in' : `is ${role}`}.${advice}\n`,
  }
}

export async function makeResetLink(
  ctx: OperatorContext,
  person: string,
  options: CommonOptions,
): Promise<CommandResult> {
  return await makeLink(ctx, person, { kind: 'reset' }, options)
}

export async function makeEmailLink(
  ctx: OperatorContext,
  person: string,
  given: string,
  options: CommonOptions,
): Promise<CommandResult> {
  const email = given.trim()
  if (!isEmail(email)) throw new UsageError('The new address must be an email address such as ada@acme.test.')
  return await makeLink(ctx, person, { kind: 'email', email }, options)
}

async function makeLink(
  ctx: OperatorContext,
  person: string,
  wanted: NewUserLink,
  { organization: given }: CommonOptions,
): Promise<CommandResult> {
  const appUrl = ctx.config.appUrl()
  const find = UUID_PATTERN.test(person) ? findAccountByUser : findAccountByEmail
  const account = await find(ctx.db, person)
  const wantedId = given === undefined ? account?.entrance?.id : (await findOrganization(ctx, given)).id
  const organization = account?.organizations.find(({ id }) => id === wantedId)
  if (!account || !organization) {
    throw new CliError(
      `No person with a role signs in with ${person}. Give the user a role with wf users role, and invite the person.`,
    )
  }
  const isEmailLink = wanted.kind === 'email'
  if (isEmailLink && account.passwordHash === null) {
    throw new CliError(
      `${account.email} has no password, which the link asks for. The person sets one on the page Account.`,
    )
  }
  const { id: organizationId, userId } = organization
  const link = await createUserLink(ctx.db, userId, wanted, () => {}, operatorOf(organizationId))
  if (link === 'email_taken') throw new CliError(`${organization.name} has another user with that address.`)
  if (link === undefined || link === 'not_possible') throw new CliError(`${person} was changed meanwhile. Try again.`)
  const url = `${new URL(appUrl).origin}/link#${link.token}`
  const what = isEmailLink
    ? `Gives ${account.email} the address ${wanted.email}`
    : `Sets a new password of ${account.email}`
  return linkResult(url, { email: account.email, expires_at: link.expiresAt }, what, LINK_HOURS[wanted.kind])
}

/** `wf setup-link [ORGANIZATION]` */
export async function makeSetupLink(
  ctx: OperatorContext,
  { organization: given }: CommonOptions,
): Promise<CommandResult> {
  const appUrl = ctx.config.appUrl()
  const isFirst = given === undefined && (await listOrganizations(ctx.db, { limit: 1 })).length === 0
  const organization = isFirst ? undefined : await findOrganization(ctx, given)
  const token = await createSetupLink(ctx.db, organization?.id ?? null)
  const url = `${new URL(appUrl).origin}/setup#${token}`
  const expiresAt = new Date(Date.now() + LINK_HOURS.setup * 3_600_000)
  const what = organization ? `an owner of ${organization.name}` : 'the owner of a new organization'
  const facts = { organization_id: organization?.id ?? null, expires_at: expiresAt }
  return linkResult(url, facts, `Makes the person who opens it ${what}`, LINK_HOURS.setup)
}

function linkResult(url: string, facts: object, what: string, hours: number): CommandResult {
  const validity = `Works once, for ${hours} ${hours === 1 ? 'hour' : 'hours'}.`
  return {
    json: { url, ...facts },
    text: (terminal) => `${paint(terminal, 'bold', url)}\n${paint(terminal, 'dim', `${what}. ${validity}`)}\n`,
  }
}

function toJson({ workflow_count: _count, version: _version, ...user }: AppUserOut): object {
  return user
}
