import { ROLES } from '../enumerations.ts'
import { NAME_MAX_LENGTH } from '../limits.ts'
import { Closed, List, Nullable, Optional, type Static } from '../schema/objects.ts'
import { Bool, DateTime, Int, Name, named, Str, StringEnum, Text, Uuid } from '../schema/values.ts'
import { EditedVersion, Version } from './common.ts'
import { Email, EmailAddress } from './sign-in.ts'
import { Micros } from './workflows.ts'

export const AppOrganizationOut = Closed('AppOrganizationOut', 'The organization.', {
  ...named('The organization.'),
  is_suspended: Bool('Suspended: nothing of it runs or is sent.'),
  created_at: DateTime('When it was made.'),
  month_budget: Micros('What its runs may spend on models in a month (UTC)'),
  month_spent: Int('What they have spent this month, in millionths of the currency.'),
  currency: Nullable(Str('The currency of budgets and costs, as an ISO 4217 code; null if no model has prices.')),
  offered_models: List(Str('The name of a model, or `builtin`.'), 'What members may choose; empty: every model.'),
  version: Version,
})
export type AppOrganizationOut = Static<typeof AppOrganizationOut>
export const SaveOrganizationIn = Closed('SaveOrganizationIn', 'New values of the organization.', {
  name: Name(NAME_MAX_LENGTH, 'Its name.'),
  month_budget: Optional(AppOrganizationOut.properties.month_budget),
  offered_models: Optional(
    List(Text(200, 'The name of a model, or `builtin`.', 1), 'What members may choose; empty: every model.', {
      maxItems: 100,
    }),
  ),
  version: EditedVersion,
})
export type SaveOrganizationIn = Static<typeof SaveOrganizationIn>
export const DeleteOrganizationIn = Closed(
  'DeleteOrganizationIn',
  'Confirms what is deleted. Needs a confirmation first.',
  {
    name: Text(NAME_MAX_LENGTH, 'The name of the organization, as a confirmation.', 1),
  },
)

export const AppUserOut = Closed('AppUserOut', 'A user of the organization.', {
  id: Uuid('The user.'),
  email: Str('Email address.'),
  first_name: Str('First name; may be empty.'),
  last_name: Str('Last name; may be empty.'),
  role: Nullable(StringEnum(ROLES, 'The role; null: cannot sign in.')),
  // `no_access`: listed in workflows, cannot sign in. `invited`: has an open invitation.
  state: StringEnum(['active', 'invited', 'no_access', 'deactivated'], 'Whether the person can sign in.'),
  last_seen_at: Nullable(DateTime('When the person last used the application.')),
  workflow_count: Int('Workflows that list the person, as far as the caller sees them.'),
  version: Version,
})
export type AppUserOut = Static<typeof AppUserOut>
export const CreateUserIn = Closed('CreateUserIn', 'A new user.', {
  id: Uuid('The id of the new user, chosen by the caller.'),
  email: Email,
  first_name: Name(NAME_MAX_LENGTH, 'First name; may be empty.', 0),
  last_name: Name(NAME_MAX_LENGTH, 'Last name; may be empty.', 0),
  role: Nullable(StringEnum(ROLES, 'The role; null: cannot sign in.')),
})
export const SaveUserIn = Closed('SaveUserIn', 'New values of a user; absent ones stay.', {
  first_name: Optional(Name(NAME_MAX_LENGTH, 'First name; may be empty.', 0)),
  last_name: Optional(Name(NAME_MAX_LENGTH, 'Last name; may be empty.', 0)),
  role: Optional(Nullable(StringEnum(ROLES, 'The role; null: cannot sign in.'))),
  is_deactivated: Optional(Bool('Deactivated users are signed out and cannot sign in.')),
  version: EditedVersion,
})
export const CreateUserLinkIn = Closed('CreateUserLinkIn', 'A link for a user; an earlier one of the same kind ends.', {
  kind: StringEnum(['invitation', 'reset', 'email'], 'What the link does.'),
  email: Optional(EmailAddress('The new address; only with `email`, which needs it.')),
})
export const UserLinkOut = Closed('UserLinkOut', 'A one-time link. Shown once.', {
  url: Str('The link to hand to the person.'),
  expires_at: DateTime('Until when it can be used.'),
})
