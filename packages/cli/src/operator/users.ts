import { type AppUserOut, compile, type Role, UUID_PATTERN } from '@workflow-service/contract'
import { Email, ROLES } from '@workflow-service/contract/app'
import {
  createUserLink,
  findAccountByEmail,
  findAccountByUser,
  findUserByEmail,
  findUserById,
  LINK_HOURS,
  listUsers,
  type NewUserLink,
  operatorOf,
  saveUser,
} from '@workflow-service/database'
import { InvalidArgumentError } from 'commander'
import { argument, command, type CommandResult, group, listResult } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import { findOrganization } from '../find.ts'
import { paint } from '../terminal.ts'

const RESET_HELP = `
The link works once, for ${LINK_HOURS.reset} hour, and replaces an earlier one. The person who opens it signs in as this person, in every
organization of this person: pass it on only to that person. Admins make such links in the application, except for people
who belong to several organizations.
`

const EMAIL_HELP = `
The link works once, for ${LINK_HOURS.email} hours, and replaces an earlier one. The person needs the password too. Send it to the new
address: you trust the reader of that mailbox to be that person. Admins make such links in the application.
`

const PERSON = argument('<person>', 'the id of the user, or the email address with which the person signs in')

/** `wf users list|role|reset-link|email-link` */
export const userCommands = group(
  'users',
  'List the users of an organization, change their roles, and let them set new passwords and addresses.',
  [
    command('list', 'List the users by email address.', list, [
      argument('[organization]', 'its id or name; not needed if there is only one'),
    ]),
    command('role', 'Change the role of a user. The person is signed out of the organization.', setRole, [
      argument('<organization>', 'its id or name'),
      argument('<user>', 'the id of the user, or the email address that the organization has for it'),
      argument('<role>', `${ROLES.join(', ')}, or none: cannot sign in`, parseRole),
    ]),
    command(
      'reset-link',
      'Make a link with which a person sets a new password.',
      (ctx, person: string) => makeLink(ctx, person, { kind: 'reset' }),
      [PERSON],
      RESET_HELP,
    ),
    command(
      'email-link',
      'Make a link with which a person gets another email address.',
      (ctx, person: string, email: string) => makeLink(ctx, person, { kind: 'email', email }),
      [PERSON, argument('<new-email>', 'the address to give the person, in every organization', parseEmail)],
      EMAIL_HELP,
    ),
  ],
)

function parseEmail(text: string): string {
  const email = text.trim()
  if (!isEmail(email)) throw new InvalidArgumentError('It must be an email address such as ada@acme.test.')
  return email
}

const isEmail = compile(Email)

function parseRole(text: string): Role | 'none' {
  const role = ([...ROLES, 'none'] as const).find((value) => value === text)
  if (!role) throw new InvalidArgumentError(`It must be ${ROLES.join(', ')} or none.`)
  return role
}

const PAGE_SIZE = 1_000

async function list(ctx: CliContext, given: string | undefined): Promise<CommandResult> {
  const organization = await findOrganization(ctx, given)
  const users: AppUserOut[] = []
  for (;;) {
    const page = await listUsers(ctx.database(), organization.id, { limit: PAGE_SIZE, after: users.at(-1)?.email })
    users.push(...page)
    if (page.length < PAGE_SIZE) break
  }
  return listResult(
    users,
    [
      { title: 'EMAIL', value: ({ email }) => email, cut: 'name' },
      { title: 'ROLE', value: ({ role }) => role ?? 'none' },
      {
        title: 'STATE',
        value: ({ state }) => state,
        colour: ({ state }) => (state === 'active' ? 'green' : 'dim'),
      },
      { title: 'LAST SEEN', time: ({ last_seen_at: time }) => time },
      { title: 'NAME', value: ({ first_name, last_name }) => `${first_name} ${last_name}`.trim() },
      { title: 'ID', value: ({ id }) => id },
    ],
    `${organization.name} has no users. Make an owner with wf setup-link, or apply a manifest with users.`,
    toJson,
  )
}

async function setRole(ctx: CliContext, given: string, named: string, wanted: Role | 'none'): Promise<CommandResult> {
  const organization = await findOrganization(ctx, given)
  const user = UUID_PATTERN.test(named)
    ? await findUserById(ctx.database(), organization.id, named)
    : await findUserByEmail(ctx.database(), organization.id, named)
  if (!user) {
    throw new CliError(`${organization.name} has no user ${named}. Add it in the application or in a manifest.`)
  }
  const role = wanted === 'none' ? null : wanted
  const change = { role, version: user.version }
  const result =
    role === user.role
      ? { kind: 'saved' as const, user }
      : await saveUser(ctx.database(), user.id, change, () => {}, operatorOf(organization.id))
  if (result === 'last_owner') {
    throw new CliError(
      `${user.email} is the last owner of ${organization.name}. Make another one first: wf setup-link.`,
    )
  }
  if (result?.kind !== 'saved') throw new CliError(`${user.email} was changed meanwhile. Try again.`)
  ctx.notify(organization.id, 'users', 'workflows')
  const advice =
    role !== null && ['no_access', 'invited'].includes(result.user.state)
      ? ' An admin can now make an invitation link in the application.'
      : ''
  return {
    json: toJson(result.user),
    text: () => `${user.email} ${role === null ? 'has no role and cannot sign in' : `is ${role}`}.${advice}\n`,
  }
}

async function makeLink(ctx: CliContext, person: string, wanted: NewUserLink): Promise<CommandResult> {
  const appUrl = ctx.config.appUrl()
  const account = UUID_PATTERN.test(person)
    ? await findAccountByUser(ctx.database(), person)
    : await findAccountByEmail(ctx.database(), person)
  const [organization] = account?.organizations ?? []
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
  const link = await createUserLink(ctx.database(), userId, wanted, () => {}, operatorOf(organizationId))
  if (link === 'email_taken') throw new CliError(`${organization.name} has another user with that address.`)
  if (link === undefined || link === 'not_possible') throw new CliError(`${person} was changed meanwhile. Try again.`)
  ctx.notify(organizationId, 'users')
  const url = `${new URL(appUrl).origin}/link#${link.token}`
  const what = isEmailLink
    ? `Gives ${account.email} the address ${wanted.email}`
    : `Sets a new password of ${account.email}`
  const hours = LINK_HOURS[wanted.kind]
  return {
    json: { url, email: account.email, expires_at: link.expiresAt },
    text: (terminal) =>
      `${paint(terminal, 'bold', url)}\n${paint(terminal, 'dim', `${what}. Works once, for ${hours} ${hours === 1 ? 'hour' : 'hours'}.`)}\n`,
  }
}

function toJson({ workflow_count: _count, version: _version, ...user }: AppUserOut): object {
  return user
}
