/**
 * Every event that the services log, by its name `noun.verb` in the field `msg`, with what it means to an operator. The
 * same event has the same name in every service. A `Logger` takes no other name.
 */
export const LOG_EVENTS = {
  // The process.
  'service.started': 'The service listens at `url`, or the runner takes sessions.',
  'service.stopping': 'The process got `signal` and stops.',
  'service.stopped': 'Everything under way has ended.',
  'service.grace_ended': 'A runner stops: `sessions` did not reach the end of a step in time, and are abandoned.',
  'service.stop_failed': 'The stop ended with an error; the process exits with status 1.',
  'service.stop_timed_out': 'The stop took too long; the process exits with status 1.',
  'task.failed': 'A background `task` failed. It runs again at its next time.',
  'setup.pending': 'No account exists yet; `hint` says how the first owner is made.',
  // Requests to a service.
  'request.answered': 'A request was answered, or cut off (`is_cut_off`).',
  'request.failed': 'A request was answered with a status of 500 or above.',
  'request.refused': 'The server refused a request before it reached an operation, such as one that is not valid HTTP.',
  // What the services depend on.
  'budget.exceeded':
    'A request to a model was not made, because the budget of this `scope` (run, day or month) is spent.',
  'budget.nearly_spent': '80 % of a budget are spent. Amounts are millionths of the currency.',
  'broker.blocked': 'RabbitMQ accepts no messages because of its memory or disk alarm.',
  'broker.connected': 'A connection to RabbitMQ is open.',
  'broker.disconnected':
    'A connection to RabbitMQ was lost or failed, once for each `error` of an outage; it is tried again.',
  'change_notice.listening': 'The application hears what changes, and tells the pages that are open.',
  'change_notice.send_failed': 'Open pages were not notified of a change; they read it when they are loaded again.',
  'change_notice.unavailable': 'The application does not hear what changes; it connects again.',
  'database.available': 'PostgreSQL answers again.',
  'database.close_timed_out': 'Connections to PostgreSQL did not close in time when the runner stopped.',
  'database.connection_lost': 'A connection to PostgreSQL was lost. The next statement opens another one.',
  'database.logged': 'A `line` of the log of PostgreSQL itself, in `npm start`.',
  'database.unavailable': 'PostgreSQL does not answer; sessions wait.',
  'dependency.available': 'This `dependency` answers again, which `/readyz` found unavailable.',
  'dependency.unavailable': '`/readyz` fails, because this `dependency` does not answer; `error` says why.',
  'dispatcher.available': 'The dispatcher answers again.',
  'dispatcher.response_invalid': 'A response of the dispatcher has an unknown form: are both of the same release?',
  'dispatcher.unavailable': 'The dispatcher does not answer; deliveries wait.',
  'rate_limit_store.connected': 'The connection to the store of the rate limits is open.',
  'rate_limit_store.unavailable': 'The store of the rate limits does not answer; each process counts alone.',
  'span.export_failed': 'The receiver of traces did not take the spans; they are dropped. At most once a minute.',
  // The session queue.
  'message.dead_lettered': 'A message of the session queue could not be read; it moves to the dead-letter queue.',
  'message.failed': 'Handling a message of the session queue failed. The sweep finds its session.',
  'queue.mismatched': 'A queue exists with other properties than the settings say; it is used as it is.',
  // Sessions and runs.
  'auto_run.started': 'A workflow was started by its schedule.',
  'lease.lost': 'A runner lost the lease of a session, which another runner continues.',
  'run.attempt_failed': 'An attempt at a run failed unexpectedly; it is tried again until it has no attempt left.',
  'run.ended': 'A runner ended its work at a run; `outcome` says how.',
  'run.started': 'A runner began or continued a run.',
  'trial.failed': 'A text that a person tried a workflow with failed unexpectedly; nothing was sent.',
  'runner.ended': 'The process of this `runner` has ended without a stop; the other runners take over its sessions.',
  'session.abandoned': 'The work at a session failed unexpectedly; its lease expires, and a runner takes it up again.',
  'session.acquire_failed': 'A runner could not acquire sessions; it tries again.',
  'session.release_failed': 'Sessions could not be released when a runner stopped; their leases expire.',
  // The agent.
  'model.fallback_used': 'The API of `model` is unavailable, and a run continues with `fallback`.',
  'model.limit_reached': 'A model reached the limit of this `setting`.',
  'model.missing': 'A run needs a model that AGENT_MODEL or AGENT_MODELS does not have for it.',
  'model.not_offered': 'The models of AGENT_MODELS could not be recorded, so that people cannot choose them.',
  'model.request_failed': 'A request to the model failed; `code` says how.',
  'lookup.answered': 'A tool of a look-up was called; `ok`, `status` and `bytes` say what came back.',
  // Deliveries.
  'approval.record_failed': 'The first accepted payload could not be recorded, so the next one needs an approval too.',
  'delivery.abandoned': '`count` deliveries without an outcome became `unknown`: their dispatcher has died.',
  'delivery.answered': 'A delivery has its outcome.',
  'delivery.not_sent': 'A payload was not sent for want of something of the service; its claim was removed.',
  'delivery.refused': 'A payload in a request of several was answered with this `status`: this call did not send it.',
  'delivery.outcome_delayed': 'An outcome could not be recorded yet; it is tried again.',
  'delivery.outcome_lost': 'An outcome was not recorded: the database stayed unavailable. The delivery is `unknown`.',
  'delivery.outcome_recorded': 'An outcome that was delayed has been recorded.',
  'delivery.outcome_refused': 'An outcome could not be recorded, and is not tried again.',
  'delivery.send_failed': 'Sending a payload failed unexpectedly; its outcome is `unknown`.',
  'delivery.sent_again': 'A model sent a payload again that may have arrived; `reason` is its reason.',
  'delivery.waiting': 'A runner has waited long for the outcome of a delivery or look-up.',
  'notice.not_made': 'The notices of an organization could not be recorded; it is tried again in a minute.',
  'notice.not_sent': 'A notice could not be sent; it is tried again until it is an hour old.',
  'endpoint.not_reached': 'A request did not reach its endpoint; `detail` is for operators.',
  'secret.decrypt_failed': 'A signing secret could not be decrypted: does SECRETS_KEY have its key?',
  // Webhook sources and their addresses.
  'address_check.delegated': 'Requests to endpoints go through WEBHOOK_EGRESS_PROXY, which checks their addresses.',
  'address_check.exempted': 'WEBHOOK_ALLOWED_SUBNETS allows endpoints in private networks. For development only.',
  'webhook_source.deleted': 'A webhook source was deleted.',
  'webhook_source.saved': 'A webhook source was saved.',
  'webhook_source.unverified': 'A webhook source is saved without verification (`verify=never`).',
  // Upkeep.
  'retention.applied': 'Rows older than the retention settings were deleted, by kind.',
  'sign_in.oidc_failed': 'A sign-in with OpenID Connect failed; `problem` says how.',
  'usage.rolled_up': 'The usage of `hours` was added up.',
} as const

/** The name of an event that may be logged. */
export type LogEvent = keyof typeof LOG_EVENTS
