import { RESEND_IDS_MAX } from '../limits.ts'
import { Type } from '../schema/type.ts'
import { Closed, List, Nullable, Optional, type Static } from '../schema/objects.ts'
import { Bool, DateTime, Int, named, Str, StringEnum, Uuid } from '../schema/values.ts'
import { ListOf } from './common.ts'
import { DELIVERY_FILTERS } from './webhook-sources.ts'

/** Which payloads to send again: each once, by the newest of the deliveries that match. */
export const ResendPreviewIn = Closed('ResendPreviewIn', 'Payloads to send again, and how fast.', {
  ...DELIVERY_FILTERS,
  ids: Optional(
    List(Uuid('A delivery.'), 'Only these deliveries. The other filters do not apply.', {
      minItems: 1,
      maxItems: RESEND_IDS_MAX,
    }),
  ),
  per_second: Int('Payloads for each second.', { minimum: 1, maximum: 100 }),
})
export type ResendPreviewIn = Static<typeof ResendPreviewIn>

export const ResendJobIn = Closed('ResendJobIn', 'Payloads to send again, and how fast.', {
  id: Uuid('The id of the job, chosen by the caller, so that a repeated request sends nothing twice.'),
  ...ResendPreviewIn.properties,
  previewed_at: Optional(
    DateTime(
      'That of the preview which a person has confirmed: a payload of which a delivery ended later is left out.',
    ),
  ),
})

export const ResendPreviewOut = Closed('ResendPreviewOut', 'What would be sent again.', {
  previewed_at: DateTime('The time of the preview, for the job.'),
  total: Int('Payloads that would be sent.'),
  is_more: Bool('Whether more than the 5,000 deliveries of one job match: send the others again afterwards.'),
  sources: List(
    Closed('ResendSourceOut', 'The payloads of a webhook source.', {
      ...named('The webhook source.'),
      count: Int('How many.'),
      needs_approval: Bool('Whether it asks for approval: its payloads are not sent.'),
    }),
    'By webhook source, the most first.',
  ),
})
export type ResendPreviewOut = Static<typeof ResendPreviewOut>

export const ResendJobOut = Closed('ResendJobOut', 'Payloads that are sent again together.', {
  id: Uuid('The job.'),
  status: StringEnum(['running', 'stopped', 'done'], '`running` until all were sent, or it was stopped.'),
  total: Int('Its payloads.'),
  done: Int('How many were sent, or not sent for a reason.'),
  not_sent: Int('How many of these were not sent: they or their source were deleted, or it asks for approval now.'),
  per_second: Int('Payloads for each second.'),
  outcomes: Type.Record(Type.String(), Type.Integer(), {
    description: 'How many have which outcome; in a list, only of running jobs.',
  }),
  created_by: Nullable(Str('Who started it; null: the operator.')),
  created_at: DateTime('When it was started.'),
  finished_at: Nullable(DateTime('When it ended.')),
})
export type ResendJobOut = Static<typeof ResendJobOut>

export const ResendJobList = ListOf('ResendJobList', ResendJobOut, 'The newest 50 jobs.')
