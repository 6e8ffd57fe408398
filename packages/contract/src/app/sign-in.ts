import { type Static, Type } from 'typebox'
import { EMAIL_MAX_LENGTH, NAME_MAX_LENGTH, PASSWORD_MAX_LENGTH, PASSWORD_MIN_LENGTH } from '../limits.ts'
import { DateTime, Nullable, StringEnum, Uuid } from '../schema/types.ts'
import { Closed, Name, ROLES, Text } from './common.ts'

const Password = Text(PASSWORD_MAX_LENGTH, 'A password.', 1)
const NewPassword = Text(PASSWORD_MAX_LENGTH, 'A password to set.', PASSWORD_MIN_LENGTH)
/** Makes the schema of an email address. */
export function EmailAddress(description: string) {
  return Type.String({
    minLength: 3,
    maxLength: EMAIL_MAX_LENGTH,
    format: 'storable',
    pattern: '^[^\\s@]+@[^\\s@]+$',
    description,
  })
}
export const Email = EmailAddress('Email address; accounts are found by it, ignoring case.')
const Token = Type.String({ minLength: 1, maxLength: 200, description: 'The token in the fragment of a link.' })
const PersonName = Name(NAME_MAX_LENGTH, 'First and last name.')

export const SetupStateOut = Closed('SetupStateOut', 'What the sign-in page needs to know.', {
  needs_setup: Type.Boolean({ description: 'No account exists yet: the operator has a setup link.' }),
  has_oidc: Type.Boolean({ description: 'Whether sign-in with OpenID Connect is configured.' }),
})
export const CookieOut = Closed('CookieOut', 'Whether the browser keeps the cookie of a sign-in.', {
  is_kept: Type.Boolean({ description: 'The request had the cookie of an earlier answer.' }),
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
  kind: StringEnum(LINK_KINDS, { description: 'What it does.' }),
  organization_name: Nullable(Type.String({ description: 'The organization; null if setup creates one.' })),
  email: Nullable(
    Type.String({ description: 'The email address that it is for, or that the account gets; null for setup.' }),
  ),
  name: Nullable(Type.String({ description: 'The name of the user in the organization, if any.' })),
  role: Nullable(
    StringEnum(ROLES, { description: 'The role that the person gets; null if the link gives no access.' }),
  ),
  expires_at: DateTime({ description: 'Until when it can be used.' }),
})
export const AcceptLinkIn = Closed(
  'AcceptLinkIn',
  'Accepts an invitation, sets a new password or another email address.',
  {
    token: Token,
    name: Type.Optional(PersonName),
    password: Text(
      PASSWORD_MAX_LENGTH,
      'A password to set; that of the account, if the email address of an invitation has one, and for another address.',
      PASSWORD_MIN_LENGTH,
    ),
  },
)

export const MeOut = Closed('MeOut', 'The person who is signed in.', {
  account: Closed('AccountOut', 'The account.', {
    id: Uuid({ description: 'The account.' }),
    email: Type.String({ description: 'Email address.' }),
    name: Type.String({ description: 'Name.' }),
    has_password: Type.Boolean({ description: 'Whether the account has a password.' }),
    has_oidc: Type.Boolean({ description: 'Whether the account signs in with OpenID Connect.' }),
  }),
  user_id: Uuid({ description: 'The person as a user of the organization.' }),
  role: StringEnum(ROLES, { description: 'The role in the organization.' }),
  organization: Closed('MyOrganizationOut', 'The organization that the person works in.', {
    id: Uuid({ description: 'The organization.' }),
    name: Type.String({ description: 'Its name.' }),
    is_suspended: Type.Boolean({ description: 'Suspended: nothing of it runs or is sent.' }),
  }),
  organizations: Type.Array(
    Closed('MembershipOut', 'An organization of the person.', {
      id: Uuid({ description: 'The organization.' }),
      name: Type.String({ description: 'Its name.' }),
      role: StringEnum(ROLES, { description: 'The role there.' }),
    }),
    { description: 'Every organization of the person.' },
  ),
  confirmed_until: Nullable(
    DateTime({ description: 'Until when the person counts as confirmed for sensitive changes; null: not confirmed.' }),
  ),
  api_url: Nullable(Type.String({ description: 'Address of the public API, for curl lines; null if not known.' })),
})
export type MeOut = Static<typeof MeOut>
export const SaveMeIn = Closed('SaveMeIn', 'The name.', {
  name: PersonName,
  email: Type.Optional(
    EmailAddress('May be the present address. Another one is set with a link that an admin or the operator makes.'),
  ),
})
export const ChangePasswordIn = Closed('ChangePasswordIn', 'A new password. Needs a confirmation first.', {
  new_password: NewPassword,
})
export const SwitchOrganizationIn = Closed('SwitchOrganizationIn', 'The organization to work in.', {
  organization_id: Uuid({ description: 'One of the organizations of the person.' }),
})
export const ConfirmIn = Closed('ConfirmIn', 'The password, once more.', { password: Password })
export const SignInOut = Closed('SignInOut', 'A sign-in of the person.', {
  id: Uuid({ description: 'The sign-in.' }),
  method: StringEnum(['password', 'oidc', 'link'], { description: 'How the person signed in.' }),
  address: Nullable(Type.String({ description: 'The IP address at sign-in.' })),
  user_agent: Nullable(Type.String({ description: 'The browser at sign-in.' })),
  created_at: DateTime({ description: 'When.' }),
  last_seen_at: DateTime({ description: 'When it was last used, to the minute.' }),
  is_current: Type.Boolean({ description: 'Whether this request uses it.' }),
})
export type SignInOut = Static<typeof SignInOut>
export const SignInList = Closed('SignInList', 'Sign-ins, newest first.', {
  data: Type.Array(SignInOut, { description: 'The sign-ins that have not ended.' }),
})
