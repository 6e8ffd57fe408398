import { DELIVERY_KINDS, DELIVERY_OUTCOMES, ROLES, RUN_STATUSES, SCOPES } from '@workflow-service/contract/enumerations'
import { LINK_HOURS } from '@workflow-service/contract/limits'
import {
  argument,
  command,
  type CommandDeclaration,
  type CommandGroup,
  global,
  group,
  inOrganization,
  local,
  operator,
  option,
  withKey,
} from './cli-command.ts'
import {
  parseCondition,
  parseDuration,
  parseExpiry,
  parseId,
  parseIdPrefix,
  parseList,
  parseNumber,
  parseTime,
} from './parse-options.ts'

const FOLLOW = option('-f, --follow', 'show how it goes, until its end or Ctrl-C; with --json, one object per line')
const TIMEOUT = option('--timeout <duration>', 'end after 30s, 10m, 2h with exit status 124', parseDuration)
const YES = option('--yes', 'do not ask')
const SINCE = option('--since <time>', 'from this time on: 2026-01-31T09:00:00Z, or a duration ago: 15m, 2h', parseTime)
const UNTIL = option('--until <time>', 'before this time', parseTime).conflicts('follow')
const RUN = argument('<id>', 'the id of the run, which is that of the start; its beginning is enough', parseIdPrefix)
const SESSION = argument('<id>', 'its id; the beginning of it is enough', parseIdPrefix)
const WORKFLOW = argument('<workflow>', 'its id or name')
const SOURCE = argument('<source>', 'its name or id')
const DELIVERY = option('--delivery <id>', 'only this delivery', parseId)
const PERSON = argument('<person>', 'the id of the user, or the email address with which the person signs in')
const OPTIONAL_ORGANIZATION = argument('[organization]', 'its id or name; not needed if there is only one')
const NAMED_ORGANIZATION = argument('<organization>', 'its id or name')

const limit = (things: string, count: number) =>
  option('--limit <n>', `maximum number of ${things}`, parseNumber(10_000), count)

const signIn = () => import('./key/sign-in.ts')

const SIGN_IN: readonly CommandDeclaration[] = [
  command(
    'login',
    'Save an API key, with which wf uses the public API.',
    local(signIn, 'login'),
    [argument('[url]', 'the address of the service, such as https://api.example.com (default: WF_API_URL)')],
    `
The key is asked for, or read from standard input. It is checked, and saved in a file that only you can read:
~/.config/workflow-service/credentials.json, or below XDG_CONFIG_HOME. In CI, set WF_API_KEY and WF_API_URL.

Example:
  echo "$KEY" | wf login https://api.example.com
`,
  ),
  command('logout', 'Delete the saved API key.', local(signIn, 'logout')),
  command('whoami', 'Show the organization of the API key.', withKey(signIn, 'whoami')),
]

const APPLY_HELP = `
All files are validated before anything is written, also against what is stored and by the dispatcher; every error is
listed with its path. Then everything except webhook sources is written in one transaction. Webhook sources are saved through the dispatcher, which sends a verification
request for each new or changed one. If an endpoint does not confirm, its source stays unchanged, the reason is shown,
the rest is applied, and the exit status is 1. Applying the same file again changes nothing and sends nothing.

  Ids                The file's ids are used. An id that is left out is derived from the name, so the same file gives
                     the same ids everywhere, and renaming something without an id creates a new one.
  Not in the file    Users, API keys, webhook sources, workflows and sessions that the file does not name are not
                     changed. The users, triggers and files of a workflow are replaced by those in the file.
  Omitted fields     take their default, with these exceptions, which keep the stored value: signing_secret (null
                     removes it), a key's scopes and revoked, a session's open. A source whose endpoint_url changes in
                     scheme, host or port needs its signing_secret again.
  API keys           "key: wfk_…" stores that key and replaces an earlier one of the same name. Without "key", a key is
                     generated if the name is new, and shown once.
  People's changes   What a person changed in the application since this thing was last applied is not overwritten
                     silently: the plan is shown with who changed it and when, and you are asked. Without a terminal,
                     nothing is applied and the exit status is 1, unless --yes is given.
  rules.yaml         A file of that name in the root of a workflow is validated; an error in it is one of the manifest.
  --organization     applies the file to another organization than it names, such as one of wf export --portable.
  Warnings           What the built-in agent cannot follow in a workflow's description. They do not fail the command.
  verify: false      stores a webhook source without a verification request, for tests and migrations.
`

const MANIFESTS: readonly CommandDeclaration[] = [
  command(
    'migrate',
    'Migrate the database to the newest schema.',
    global(() => import('./operator/migrate.ts'), 'migrateDatabase'),
    [],
    `
It is safe to repeat it and to run it several times at once. The role in DATABASE_URL must own the database or its
schema "public"; it need not be a superuser. Requires PostgreSQL 15 or newer with encoding UTF8.`,
  ),
  command(
    'apply',
    'Create or update organizations from manifests.',
    global(() => import('./operator/apply.ts'), 'apply'),
    [
      argument('<file...>', 'manifests in YAML or JSON, one organization each; - is standard input'),
      option('--dry-run', 'show what would be created and changed, and write nothing'),
      option('--organization <organization>', 'apply the one file to this organization, by id or name, or a new name'),
      option('--allow-unknown', 'store scopes, trigger source slugs and subagent source types that are unknown'),
      option('--yes', 'overwrite what people changed in the application, without asking'),
    ],
    APPLY_HELP,
  ),
  command(
    'export',
    'Print an organization as a manifest that changes nothing when it is applied.',
    inOrganization(() => import('./operator/export.ts'), 'exportOrganization'),
    [
      OPTIONAL_ORGANIZATION,
      option('--workflow <workflow>', 'only this workflow, by id or name, with the users that it lists'),
      option('--portable', 'without ids and times, for wf apply FILE --organization OTHER'),
    ],
    `
It has the organization, its users, webhook sources and workflows with their ids, in YAML, or in JSON with --json. It
does not have API keys, signing secrets, sessions, the roles of people, runs and logs; applying it keeps those.

To copy an organization to another one, or to another installation:
  wf export Acme --portable > acme.yaml
  wf apply acme.yaml --organization "Acme staging"
Every webhook source of the copy is unsigned until you give it a signing_secret.
`,
  ),
]

const organizations = () => import('./operator/organizations.ts')

const ORGANIZATIONS = group('organizations', 'Create, list, suspend and delete organizations.', [
  command(
    'create',
    'Create an organization. wf setup-link makes the link for its first owner.',
    global(organizations, 'create'),
    [argument('<name>', 'its name')],
  ),
  command('list', 'List the organizations by name.', global(organizations, 'list')),
  command(
    'suspend',
    'Refuse every request of its keys, and start and send nothing of it.',
    global(organizations, 'suspend'),
    [NAMED_ORGANIZATION],
  ),
  command('resume', 'End the suspension.', global(organizations, 'resume'), [NAMED_ORGANIZATION]),
  command(
    'delete',
    'Delete an organization with everything in it. It cannot be undone.',
    global(organizations, 'remove'),
    [NAMED_ORGANIZATION, option('--yes', 'do not ask for its name')],
  ),
])

const INSTRUCTIONS = command(
  'instructions',
  'Print the system text of agents with a model, with the instructions of the organization.',
  inOrganization(() => import('./operator/instructions.ts'), 'show'),
  [OPTIONAL_ORGANIZATION, option('--versions', 'list the versions of the instructions, with who saved them')],
)

const SETUP_LINK = command(
  'setup-link',
  'Make a link with which a person becomes an owner.',
  operator(() => import('./operator/setup-link.ts'), 'setupLink'),
  [argument('[organization]', 'its id or name (default: the only one; without any, the link creates one)')],
  `
The link works once, for ${LINK_HOURS.setup} hours, and replaces an earlier one. The person who opens it becomes an
owner of the organization: do not pass it on.
`,
)

const users = () => import('./operator/users.ts')

const USERS = group(
  'users',
  'List the users of an organization, change their roles, and let them set new passwords and addresses.',
  [
    command('list', 'List the users by email address.', inOrganization(users, 'list'), [OPTIONAL_ORGANIZATION]),
    command(
      'role',
      'Change the role of a user. The person is signed out of the organization.',
      inOrganization(users, 'setRole'),
      [
        argument('<user>', 'the id of the user, or the email address that the organization has for it'),
        argument('<role>', 'the new role; none: cannot sign in').choices([...ROLES, 'none']),
      ],
    ),
    command(
      'reset-link',
      'Make a link with which a person sets a new password.',
      operator(users, 'makeResetLink'),
      [PERSON],
      `
The link works once, for ${LINK_HOURS.reset} hour, and replaces an earlier one. The person who opens it signs in as this
person, in every organization of this person: pass it on only to that person. Admins make such links in the application,
except for people who belong to several organizations.
`,
    ),
    command(
      'email-link',
      'Make a link with which a person gets another email address.',
      operator(users, 'makeEmailLink'),
      [PERSON, argument('<new-email>', 'the address to give the person, in every organization')],
      `
The link works once, for ${LINK_HOURS.email} hours, and replaces an earlier one. The person needs the password too. Send
it to the new address: you trust the reader of that mailbox to be that person. Admins make such links in the application.
`,
    ),
  ],
)

const erase = () => import('./operator/erase.ts')

const PEOPLE = group('people', 'Erase the data of a person.', [
  command(
    'erase',
    'Delete a person from all organizations, or from one, with the name in the audit log.',
    operator(erase, 'erasePerson'),
    [PERSON, YES],
    `
It deletes the users, the account and its sign-ins, and replaces the name and the address by "erased person" in the audit
log, in approvals and in cancelled runs. The audit log keeps which user id did what and when: the organization has to
account for its changes. Contexts and payloads that name the person are customers' data: wf runs delete, wf deliveries
delete.
`,
  ),
])

const DELIVERIES = group('deliveries', 'Send payloads again, and delete single entries of the delivery log.', [
  command(
    'resend',
    'Send all payloads again that meet the conditions.',
    inOrganization(() => import('./operator/deliveries.ts'), 'resend'),
    [
      option('--where <field=value>', 'a condition; may be repeated', parseCondition),
      option('--rate <n>', 'payloads for each second', parseNumber(100), 10),
      option('--dry-run', 'only show what would be sent'),
    ],
    `
A condition is FIELD=VALUE, with the fields source, workflow, outcome, status, search, since, until and attention (yes or
no). Each payload is sent once, by the application, which must run; those of sources that ask for approval are left out.
Endpoints may act twice.

Example:
  wf deliveries resend --where source="Order intake" --where status=500 --where since=2h --dry-run
`,
  ),
  command('delete', 'Delete a delivery that is not one of a run.', operator(erase, 'deleteOneDelivery'), [
    argument('<id>', 'its id', parseId),
    YES,
  ]),
])

const keys = () => import('./operator/keys.ts')

const KEYS = group('keys', 'Create, list and revoke API keys.', [
  command('create', 'Create an API key. The key is shown only this once.', inOrganization(keys, 'create'), [
    argument('[name]', 'its name, unique in the organization (default: its prefix)'),
    option('--name <name>', 'the name, given as an option'),
    option('--scopes <list>', 'what the key allows, separated by commas', parseList(SCOPES)).default(
      [...SCOPES],
      SCOPES.join(','),
    ),
    option('--expires <time>', 'when it expires: 2026-12-31, 2026-12-31T23:59:59Z, or from now: 12h, 90d', parseExpiry),
  ]),
  command('list', 'List the API keys, oldest first.', inOrganization(keys, 'list')),
  command('revoke', 'Revoke an API key. Every gateway rejects it within 5 seconds.', inOrganization(keys, 'revoke'), [
    argument('<key>', 'its name, prefix or id, or the whole key'),
  ]),
])

const workflows = () => import('./operator/workflows.ts')
const workflowsOfKey = () => import('./key/workflows.ts')

const WORKFLOWS = group('workflows', 'List and show workflows. wf apply and the application change them.', [
  command(
    'list',
    'List the workflows, oldest first; with the database, also their last runs.',
    { ...inOrganization(workflows, 'list'), ...withKey(workflowsOfKey, 'list') },
    [
      option('--search <text>', 'only workflows whose name or description contains the text; ignores case'),
      limit('workflows', 100),
    ],
    '\nExamples:\n  wf workflows list\n  wf workflows list --search invoice',
  ),
  command(
    'show',
    'Show a workflow: what it does, and whether it can be started.',
    { ...inOrganization(workflows, 'show'), ...withKey(workflowsOfKey, 'show') },
    [WORKFLOW],
    '\nWith --json, the same document as GET /v1/workflows/{workflow_id}.\n\nExample:\n  wf workflows show "Forward orders"',
  ),
])

const START = command(
  'start',
  'Start a workflow.',
  {
    ...inOrganization(() => import('./operator/start.ts'), 'start'),
    ...withKey(() => import('./key/runs.ts'), 'start'),
  },
  [
    WORKFLOW,
    argument('<text>', 'the context that the agent receives; - reads it from standard input'),
    option('--session <id>', 'start in this open session (default: a new one)', parseIdPrefix),
    FOLLOW,
    TIMEOUT,
  ],
  `
With an API key it uses the public API; with the database it records the start as the operator, by the same rules. With
--follow, the exit status is 1 if the run does not succeed. Ctrl-C ends only the watching: the run goes on.

Examples:
  wf start "Forward orders" "order_id: A-1" --follow
  echo '{"order_id": "A-1"}' | wf start "Forward orders" - --follow --timeout 2m
`,
)

const sources = () => import('./operator/sources.ts')

const SOURCES = group('sources', 'List, pause and test webhook sources, and send a sample.', [
  command('list', 'List the webhook sources by name. Secrets are never shown.', inOrganization(sources, 'list')),
  command(
    'pause',
    'Let payloads to a webhook source wait, up to 3 days, until it is resumed.',
    inOrganization(sources, 'pause'),
    [SOURCE],
  ),
  command('resume', 'Send what waits for a paused webhook source, in its order.', inOrganization(sources, 'resume'), [
    SOURCE,
  ]),
  command('test', 'Send the verification request again and show the result.', inOrganization(sources, 'test'), [
    SOURCE,
  ]),
  command(
    'send',
    'Send one payload to a webhook source, as a run would, and show the result.',
    inOrganization(sources, 'send'),
    [
      SOURCE,
      option(
        '--payload <file>',
        'the payload, as a JSON object; - is standard input (default: the example of the source)',
      ),
    ],
    `
The dispatcher sends it, with everything that it does for a run: it compares it with the example, signs it, checks the
address, and logs it, without a run. The endpoint cannot tell it from the payload of a run. A source that asks for
approvals refuses it.

Examples:
  wf sources send "Order intake"
  echo '{"order_id": "TEST-1"}' | wf sources send "Order intake" --payload -
`,
  ),
])

const LISTEN = command(
  'listen',
  'Try an endpoint on this machine: verify it, check it, and forward copies of payloads to it.',
  { ...local(() => import('./listen/listen.ts'), 'listen'), isInOrganization: true },
  [
    argument('<endpoint>', 'its port, port and path, or URL: 3000, 3000/orders, https://localhost:3000/orders'),
    option('--source <source>', 'the webhook source, by id or name, whose payloads are forwarded until Ctrl-C'),
    option(
      '--secret <secret>',
      'the signing secret that the endpoint has (default: a new one, which is shown); - reads standard input',
    ),
    option('--unsigned', 'send no X-Service-Token, as for a source without a secret').conflicts('secret'),
    option(
      '--example <file>',
      'the example request body, as JSON (default: that of the source); without --source, it is also sent once',
    ),
    option('--once', 'do not wait for the endpoint to confirm, and forward nothing'),
    TIMEOUT,
  ],
  `
It sends what the dispatcher sends, with the same headers, from this machine:
  1. the verification request, again every 2 seconds until the endpoint confirms it with a 2xx status
  2. three more verification requests that the endpoint has to answer with 401: without a token, with a wrong one, with
     an old one
  3. with --source, a copy of each payload that the source gets from now on, also of one that its own endpoint refuses
Each request is shown with its token, checked, and the answer. A copy has the header X-Copy-Of with the id of the
delivery. Nothing of this is in the delivery log, and the source stays as it is: the secret of the source is not used.
Send a payload to forward with wf sources send, or by a start. Without --source, it needs no database and no API key.

The exit status is 1 if the endpoint did not confirm, or did not answer one of the three with 401.

Examples:
  wf listen 3000/orders --secret "$WEBHOOK_SECRET" --example order.json
  wf listen 3000/orders --source "Order intake"
`,
)

const LOGS = command(
  'logs',
  'Show the requests sent to a webhook source and their outcomes, newest first.',
  {
    ...inOrganization(() => import('./operator/logs.ts'), 'logs'),
    ...withKey(() => import('./key/runs.ts'), 'logs'),
  },
  [
    argument('[source]', 'its name or id; for a deleted source, its id. Not needed with an API key'),
    option('--session <id>', 'with an API key: of the latest runs of this session', parseIdPrefix).conflicts('run'),
    option('--run <id>', 'with an API key: of this run', parseIdPrefix),
    option('-f, --follow', 'keep printing new entries until Ctrl-C; with --json, one object per line'),
    TIMEOUT,
    option(
      '--answers',
      'below the table: what the endpoint answered to each request that it rejected, at most 4 KiB; always in --json',
    ).conflicts('follow'),
    option('--outcome <outcome>', 'only entries with this outcome').choices(DELIVERY_OUTCOMES),
    option('--kind <kind>', 'only entries of this kind').choices(DELIVERY_KINDS),
    SINCE,
    UNTIL,
    limit('entries', 25),
  ],
)

const runs = () => import('./operator/runs.ts')
const runsOfKey = () => import('./key/runs.ts')

const RUNS = group(
  'runs',
  'List, show and cancel runs, and approve or decline payloads that wait. Each accepted start becomes one run.',
  [
    command('list', 'List runs, newest first.', { ...inOrganization(runs, 'list'), ...withKey(runsOfKey, 'list') }, [
      option('--status <status>', 'only runs with this status').choices(RUN_STATUSES),
      option('--workflow <workflow>', 'only runs of this workflow, by id or name'),
      option('--search <text>', 'only runs with these words or numbers in their text').conflicts('follow'),
      option('--session <id>', 'only runs of this session; required with an API key', parseIdPrefix),
      option(
        '-f, --follow',
        'keep printing runs as their status changes, until Ctrl-C; with --json, one object per line',
      ),
      TIMEOUT,
      SINCE,
      UNTIL,
      limit('runs', 50),
    ]),
    command(
      'show',
      'Show a run with its deliveries; with the database, also its journal.',
      { ...operator(runs, 'show'), ...withKey(runsOfKey, 'show') },
      [RUN, FOLLOW, TIMEOUT],
    ),
    command(
      'cancel',
      'End a run before its next step, or all queued runs of a workflow or session.',
      operator(runs, 'cancel'),
      [
        argument('[id]', 'the id of the run', parseIdPrefix),
        option('--workflow <workflow>', 'all queued runs of this workflow, by id or name').conflicts('session'),
        option('--session <id>', 'all queued runs of this session', parseIdPrefix),
      ],
    ),
    command('delete', 'Delete a run that has ended, with its journal and deliveries.', operator(erase, 'deleteRun'), [
      RUN,
      YES,
    ]),
    command(
      'approve',
      'Approve the waiting payloads of a run. They are sent exactly as shown.',
      operator(runs, 'approve'),
      [RUN, DELIVERY],
    ),
    command('decline', 'Decline the waiting payloads of a run. They are never sent.', operator(runs, 'decline'), [
      RUN,
      DELIVERY,
      option('--reason <text>', 'why; the agent reads it'),
    ]),
  ],
)

const RULES = group('rules', 'Write the rules that the built-in agent follows.', [
  command(
    'draft',
    'Print a rules.yaml for a run that the built-in agent refused.',
    operator(() => import('./operator/rules.ts'), 'draft'),
    [argument('<run>', 'the id of the run; the beginning of it is enough', parseIdPrefix)],
  ),
])

const sessions = () => import('./operator/sessions.ts')

const SESSIONS = group(
  'sessions',
  'Open, list, close and show sessions. The starts of a session run one after another.',
  [
    command('open', 'Create a session, or reopen a closed one.', inOrganization(sessions, 'open'), [
      argument('[id]', 'its id (default: a new one)', parseId),
    ]),
    command('list', 'List the sessions, newest first.', inOrganization(sessions, 'list'), [
      option('--open', 'only open sessions').conflicts('closed'),
      option('--closed', 'only closed sessions'),
      limit('sessions', 50),
    ]),
    command(
      'close',
      'Close a session. It accepts no more starts; accepted ones still run.',
      operator(sessions, 'close'),
      [SESSION],
    ),
    command(
      'show',
      'Show a session with its newest runs.',
      { ...operator(sessions, 'show'), ...withKey(runsOfKey, 'showSession') },
      [SESSION],
    ),
  ],
)

const QUEUE = group('queue', 'Show the RabbitMQ queue from which runners learn which session has work.', [
  command(
    'show',
    'Show how many messages wait, and the dead-lettered messages with the reason.',
    global(() => import('./operator/queue.ts'), 'show'),
    [limit('dead-lettered messages, oldest first', 25)],
  ),
])

const SECRETS = group('secrets', 'Rotate the key that encrypts secrets.', [
  command(
    'rotate',
    'Encrypt every stored secret with the first key of SECRETS_KEY.',
    global(() => import('./operator/secrets.ts'), 'rotate'),
    [],
    `
To replace the key (generate one with openssl rand -base64 32), also on runners that have SECRETS_KEY:
  1. Restart all dispatchers with SECRETS_KEY=OLD,NEW, so that each of them can read the new key.
  2. Restart all dispatchers with SECRETS_KEY=NEW,OLD. They now encrypt with the new key.
  3. Run wf secrets rotate with SECRETS_KEY=NEW,OLD.
  4. Restart all dispatchers with SECRETS_KEY=NEW.
It is safe to repeat it and to run it while dispatchers run.`,
  ),
])

const AFTER_RESTORE = command(
  'after-restore',
  'End what was under way at the moment to which a backup was restored.',
  global(() => import('./operator/after-restore.ts'), 'afterRestore'),
  [YES],
  `
Run it after the database was restored to an earlier moment, and before the services start: payloads of that time may
have been sent since, and would be sent again. Deliveries in flight become unknown, runs that had not ended fail with
interrupted_by_restore, and due schedules wait for their next time. After a restore to the end of the WAL it is not
needed.`,
)

/** In the order of the help. Only this module is loaded for the help and for the completion of commands and options. */
export const COMMANDS: readonly (CommandDeclaration | CommandGroup)[] = [
  ...SIGN_IN,
  WORKFLOWS,
  START,
  RUNS,
  SESSIONS,
  LOGS,
  LISTEN,
  ...MANIFESTS,
  ORGANIZATIONS,
  SETUP_LINK,
  USERS,
  PEOPLE,
  KEYS,
  SOURCES,
  DELIVERIES,
  RULES,
  INSTRUCTIONS,
  QUEUE,
  SECRETS,
  AFTER_RESTORE,
]
