import { Closed, List, Nullable, type Static, Unknown } from '../schema/objects.ts'
import { DateTime, Str, StringEnum, Uuid } from '../schema/values.ts'

export const AuditChangeOut = Closed('AuditChangeOut', 'One changed field.', {
  field: Str('The field.'),
  old: Unknown('The value before; null for a new thing. Never a secret.'),
  new: Unknown('The value after; null for a deleted thing. Never a secret.'),
})

export const AuditEventOut = Closed('AuditEventOut', 'A change, sign-in, refusal or link.', {
  id: Uuid('The event.'),
  at: DateTime('When.'),
  actor: Closed('AuditActorOut', 'Who did it.', {
    kind: StringEnum(
      ['person', 'operator', 'service', 'stranger'],
      'A person in the application, an operator with `wf`, the service itself, or a caller who is not signed in.',
    ),
    id: Nullable(Uuid('The user.')),
    name: Str('The name at that time.'),
  }),
  action: Str('What was done, such as `webhook_source.saved`.'),
  target: Nullable(
    Closed('AuditTargetOut', 'What it was done to.', {
      kind: Str('The kind, such as `workflow`.'),
      id: Nullable(Uuid('Its id.')),
      name: Str('Its name at that time.'),
    }),
  ),
  changes: List(AuditChangeOut, 'Old and new values, without secrets, keys, tokens and passwords.'),
  request_id: Nullable(Str('The request.')),
  address: Nullable(Str("The actor's IP address.")),
})
export type AuditEventOut = Static<typeof AuditEventOut>
