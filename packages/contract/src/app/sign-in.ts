import { ROLES } from '../enumerations.ts'
import { EMAIL_MAX_LENGTH, NAME_MAX_LENGTH, PASSWORD_MAX_LENGTH, PASSWORD_MIN_LENGTH } from '../limits.ts'
import { Closed, List, Nullable, Optional, type Static } from '../schema/objects.ts'
import { Bool, DateTime, Name, named, Str, StringEnum, Text, Uuid } from '../schema/values.ts'
import { ListOf } from './common.ts'

const Password = Text(PASSWORD_MAX_LENGTH, 'A password.', 1)
const NewPassword = Text(PASSWORD_MAX_LENGTH, 'A password to set.', PASSWORD_MIN_LENGTH)
/** Makes the schema of an email address. */
export function EmailAddress(description: string) {
  const examples = ['ada@acme.test']
  return Text(EMAIL_MAX_LENGTH, description, 3, { format: 'trimmed', pattern: '^[^\\s@]+@[^\\s@]+$', examples })
}
export const Email = EmailAddress('Email address; accounts are found by it, ignoring case.')
const Token = Str('The token in the fragment of a link.', { minLength: 1, maxLength: 200 })
const PersonName = Name(NAME_MAX_LENGTH, 'First and last name.')

export const SetupStateOut = Closed('SetupStateOut', 'What the sign-in page needs to know.', {
  needs_setup: Bool('No account exists yet: the operator has a setup link.'),
  has_oidc: Bool('Whether sign-in with OpenID Connect is configured.'),
})
export const CookieOut = Closed('CookieOut', 'Whether the browser keeps the cookie of a sign-in.', {
  is_kept: Bool('The request had the cookie of an earlier response.'),
})
export const SetUpIn = Closed('SetUpIn', 'The first owner of an organization.', {
  token: Token,
  organization_name: Name(NAME_MAX_LENGTH, 'Name of the organization; ignored if the link belongs to one.'),
  name: PersonName,
  email: Email,
  password: NewPassword,
})
export const SignInIn = Closed('SignInIn', 'Email address and password.', { email: Email, password: Password })
export const OpenLinkIn = Closed('OpenLinkIn', 'A link to look at.', { token: Token })
export const LINK_KINDS = ['setup', 'invitation', 'reset', 'email'] as const
export const LinkOut = Closed('LinkOut', 'What a one-time link is for.', {
  kind: StringEnum(LINK_KINDS, 'What it does.'),
  organization_name: Nullable(Str('The organization; null if setup creates one.')),
  email: Nullable(Str('The email address that it is for, or that the account gets; null for setup.')),
  name: Nullable(Str('The name of the user in the organization, if any.')),
  role: Nullable(StringEnum(ROLES, 'The role that the person gets; null if the link gives no access.')),
  expires_at: DateTime('Until when it can be used.'),
})
export const AcceptLinkIn = Closed(
  'AcceptLinkIn',
  'Accepts an invitation, sets a new password or another email address.',
  {
    token: Token,
    name: Optional(PersonName),
    password: Optional(
      Text(
        PASSWORD_MAX_LENGTH,
        'A password to set; that of the account, if the email address of an invitation has one, and for another address. Absent: accepts an invitation as the person who is signed in with a provider.',
        PASSWORD_MIN_LENGTH,
      ),
    ),
  },
)

export const MeOut = Closed('MeOut', 'The person who is signed in.', {
  account: Closed('AccountOut', 'The account.', {
    id: Uuid('The account.'),
    email: Str('Email address.'),
    name: Str('Name.'),
    has_password: Bool('Whether the account has a password.'),
    has_oidc: Bool('Whether the account signs in with OpenID Connect.'),
  }),
  user_id: Uuid('The person as a user of the organization.'),
  role: StringEnum(ROLES, 'The role in the organization.'),
  organization: Closed('MyOrganizationOut', 'The organization that the person works in.', {
    ...named('The organization.'),
    is_suspended: Bool('Suspended: nothing of it runs or is sent.'),
  }),
  organizations: List(
    Closed('MembershipOut', 'An organization of the person.', {
      ...named('The organization.'),
      role: StringEnum(ROLES, 'The role there.'),
    }),
    'Every organization of the person.',
  ),
  confirmed_until: Nullable(
    DateTime('Until when the person counts as confirmed for sensitive changes; null: not confirmed.'),
  ),
  api_url: Nullable(Str('Address of the public API, for curl lines; null if not known.')),
})
export type MeOut = Static<typeof MeOut>
export const SaveMeIn = Closed('SaveMeIn', 'The name.', { name: PersonName })
export const ChangePasswordIn = Closed('ChangePasswordIn', 'A new password. Needs a confirmation first.', {
  new_password: NewPassword,
})
export const SwitchOrganizationIn = Closed('SwitchOrganizationIn', 'The organization to work in.', {
  organization_id: Uuid('One of the organizations of the person.'),
})
export const ConfirmIn = Closed('ConfirmIn', 'The password, once more.', { password: Password })
export const SignInOut = Closed('SignInOut', 'A sign-in of the person.', {
  id: Uuid('The sign-in.'),
  method: StringEnum(['password', 'oidc', 'link'], 'How the person signed in.'),
  address: Nullable(Str('The IP address at sign-in.')),
  user_agent: Nullable(Str('The browser at sign-in.')),
  created_at: DateTime('When.'),
  last_seen_at: DateTime('When it was last used, to the minute.'),
  is_current: Bool('Whether this request uses it.'),
})
export type SignInOut = Static<typeof SignInOut>
export const SignInList = ListOf('SignInList', SignInOut, 'Sign-ins that have not ended, newest first.')
