import { Closed, List, Nullable, Optional, Parameters, type Static } from '../schema/objects.ts'
import { Bool, DateTime, Int, Str, Uuid } from '../schema/values.ts'

const EXAMPLE_ID = '01a1fd4e-f109-7162-9275-69e670388c60'

/** The longest wait of a read, in seconds. */
const RUN_WAIT_MAX_SECONDS = 30

const RUN_FIELDS = {
  id: Uuid('Run identifier: the `id` of its start.'),
  workflow_id: Uuid('The workflow.'),
  session_id: Uuid('The session.'),
  number: Int('Position in the session, from 1.'),
  status: Str(
    '`queued`, `running`, `waiting` (for the approval of a person), `succeeded`, `failed` or `cancelled`. New values may be added.',
    { examples: ['succeeded'] },
  ),
  error: Nullable(
    Closed('PublicRunError', 'Why it failed.', {
      code: Str('Stable; match on it. New codes may be added.', { examples: ['delivery_rejected'] }),
      message: Str('A sentence for people.'),
    }),
  ),
  created_at: DateTime('When the start was accepted.'),
  started_at: Nullable(DateTime('When it began; null if it has not, as when it was cancelled before.')),
  finished_at: Nullable(DateTime('When it ended; null before.')),
} as const

export const PublicSessionRun = Closed('PublicSessionRun', 'A run.', RUN_FIELDS)

/** A run with its deliveries. */
export const PublicRunOut = Closed('PublicRunOut', 'A run, which is what a start becomes.', {
  ...RUN_FIELDS,
  deliveries: List(
    Closed('PublicDeliveryOut', 'A payload that was sent.', {
      id: Uuid('Delivery identifier. `X-Delivery-Id` of the request, unless a person sent it again.'),
      source_id: Uuid('The webhook source.'),
      source_name: Str('Its name.', { examples: ['Order intake'] }),
      outcome: Str(
        '`in_flight`, `accepted`, `rejected`, `timed_out`, `unreachable`, `refused`, `invalid` or `unknown`. New values may be added.',
        { examples: ['accepted'] },
      ),
      status: Nullable(Int('The HTTP status of the endpoint; null without one.', { examples: [200] })),
      created_at: DateTime('When it was sent.'),
    }),
    'Oldest first, at most 200.',
  ),
})
export type PublicRunOut = Static<typeof PublicRunOut>

/** A session with its latest runs. */
export const PublicSessionOut = Closed('PublicSessionOut', 'A session.', {
  id: Uuid('Session identifier.'),
  is_open: Bool('Whether starts are accepted.'),
  start_count: Int('Starts so far.'),
  created_at: DateTime('When it was opened.'),
  closed_at: Nullable(DateTime('When it was closed.')),
  runs: List(PublicSessionRun, 'The latest runs, the last one first, at most 20.'),
})
export type PublicSessionOut = Static<typeof PublicSessionOut>

export const RunQuery = Parameters({
  wait: Optional(
    Int('Waits until the run has ended, at most so many seconds. The answer has the run as it is then.', {
      minimum: 0,
      maximum: RUN_WAIT_MAX_SECONDS,
      default: 0,
    }),
  ),
})

const RUN_EXAMPLE = {
  id: EXAMPLE_ID,
  workflow_id: '01890a5d-ac96-774b-bcce-b302099a8057',
  session_id: '01a1fd4e-f10a-7c3b-8d21-5b9e0f7a6c44',
  number: 1,
  status: 'succeeded',
  error: null,
  created_at: '2026-01-31T09:00:00.000Z',
  started_at: '2026-01-31T09:00:00.012Z',
  finished_at: '2026-01-31T09:00:00.125Z',
}
export const PUBLIC_RUN_EXAMPLE: PublicRunOut = {
  ...RUN_EXAMPLE,
  deliveries: [
    {
      id: '01a1fd4e-f10b-8000-9275-69e670388c61',
      source_id: '01890a5d-ac98-7c1e-b8f0-0a6a5b7c2d11',
      source_name: 'Order intake',
      outcome: 'accepted',
      status: 200,
      created_at: '2026-01-31T09:00:00.020Z',
    },
  ],
}
export const PUBLIC_SESSION_EXAMPLE: PublicSessionOut = {
  id: RUN_EXAMPLE.session_id,
  is_open: true,
  start_count: 1,
  created_at: '2026-01-31T09:00:00.000Z',
  closed_at: null,
  runs: [RUN_EXAMPLE],
}
