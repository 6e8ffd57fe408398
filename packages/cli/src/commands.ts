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
const maintenance = () => import('./operator/maintenance.ts')
const organizations = () => import('./operator/organizations.ts')
const users = () => import('./operator/users.ts')
const erase = () => import('./operator/erase.ts')
const keys = () => import('./operator/keys.ts')
const workflows = () => import('./workflows.ts')
const sources = () => import('./operator/sources.ts')
const start = () => import('./operator/start.ts')
const runs = () => import('./operator/runs.ts')
const logs = () => import('./operator/logs.ts')
const runsOfKey = () => import('./key/runs.ts')
const sessions = () => import('./operator/sessions.ts')

const APPLY_HELP = `
Every error of all files is listed before anything is written. Then all but the
webhook sources is written in one transaction, and each new or changed source is
verified and saved. Applying a file again changes nothing and sends nothing.
What people changed in the application is overwritten only after you confirm it.
The fields of a manifest are in packages/contract/MANIFEST.md.
`

/** In the order of the help. Only this module is loaded for the help and for completion. */
export const COMMANDS: readonly (CommandDeclaration | CommandGroup)[] = [
  command(
    'login',
    'Save an API key, with which wf uses the public API.',
    local(signIn, 'login'),
    [argument('[url]', 'the address of the service, such as https://api.example.com (default: WF_API_URL)')],
    `
The key is asked for, or read from standard input, checked, and saved in
~/.config/workflow-service/credentials.json for you only.
`,
  ),

  command('logout', 'Delete the saved API key.', local(signIn, 'logout')),

  command('whoami', 'Show the organization of the API key.', withKey(signIn, 'whoami')),

  group('workflows', 'List and show workflows. wf apply and the application change them.', [
    command(
      'list',
      'List the workflows, oldest first, and whether each can be started.',
      { ...inOrganization(workflows, 'list'), ...withKey(workflows, 'list') },
      [
        option('--search <text>', 'only workflows whose name or description contains the text; ignores case'),
        limit('workflows', 100),
      ],
    ),
    command(
      'show',
      'Show a workflow: what it does, and whether it can be started.',
      { ...inOrganization(workflows, 'show'), ...withKey(workflows, 'show') },
      [WORKFLOW],
    ),
  ]),

  command(
    'start',
    'Start a workflow.',
    { ...inOrganization(start, 'start'), ...withKey(runsOfKey, 'start') },
    [
      WORKFLOW,
      argument('<text>', 'the context that the agent receives; - reads it from standard input'),
      option('--session <id>', 'start in this open session (default: a new one)', parseIdPrefix),
      FOLLOW,
      TIMEOUT,
    ],
    `
With --follow, the exit status is 1 if the run does not succeed. Ctrl-C ends
only the watching: the run goes on.
  echo '{"order_id": "A-1"}' | wf start "Forward orders" - --follow --timeout 2m
`,
  ),

  group(
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
  ),

  group('sessions', 'Open, list, close and show sessions. The starts of a session run one after another.', [
    command('open', 'Create a session, or reopen a closed one.', inOrganization(sessions, 'open'), [
      argument('[id]', 'its id (default: a new one)', parseId),
    ]),
    command('list', 'List the sessions, newest first.', inOrganization(sessions, 'list'), [limit('sessions', 50)]),
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
  ]),

  command(
    'logs',
    'Show the requests sent to a webhook source and their outcomes, newest first.',
    { ...inOrganization(logs, 'logs'), ...withKey(runsOfKey, 'logs') },
    [
      argument('[source]', 'its name or id; for a deleted source, its id; none with an API key'),
      option('--session <id>', 'with an API key: of the latest runs of this session', parseIdPrefix).conflicts('run'),
      option('--run <id>', 'with an API key: of this run', parseIdPrefix),
      option('-f, --follow', 'keep printing new entries until Ctrl-C; with --json, one object per line'),
      TIMEOUT,
      option('--outcome <outcome>', 'only entries with this outcome').choices(DELIVERY_OUTCOMES),
      option('--kind <kind>', 'only entries of this kind').choices(DELIVERY_KINDS),
      SINCE,
      UNTIL,
      limit('entries', 25),
    ],
  ),

  command(
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
      option(
        '--example <file>',
        'the example request body, as JSON (default: that of the source); without --source, it is also sent once',
      ),
      option('--once', 'do not wait for the endpoint to confirm, and forward nothing'),
      TIMEOUT,
    ],
    `
It sends the verification request until the endpoint confirms it, then three
with wrong tokens, which the endpoint has to answer with 401. With --source, it
sends a copy of each new payload, with the header X-Copy-Of. Without, it needs
neither a database nor an API key. The exit status is 1 if the endpoint did not
confirm, or did not answer one of the three with 401.
  wf listen 3000/orders --secret "$WEBHOOK_SECRET" --example order.json
`,
  ),

  command(
    'migrate',
    'Migrate the database to the newest schema.',
    global(maintenance, 'migrateDatabase'),
    [],
    `
It is safe to repeat it and to run it several times at once. The role in
DATABASE_URL must own the database or its schema "public".`,
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
To copy an organization; the sources of the copy are unsigned until you give
each a signing_secret:
  wf export Acme --portable > acme.yaml
  wf apply acme.yaml --organization "Acme staging"
`,
  ),

  group('organizations', 'Create, list, suspend and delete organizations.', [
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
  ]),

  command(
    'setup-link',
    'Make a link with which a person becomes an owner.',
    operator(users, 'makeSetupLink'),
    [argument('[organization]', 'its id or name (default: the only one; without any, the link creates one)')],
    `
It works once, for ${LINK_HOURS.setup} hours, and replaces an earlier one. The person who
opens it becomes an owner of the organization: do not pass it on.
`,
  ),

  group(
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
It works once, for ${LINK_HOURS.reset} hour, and replaces an earlier one. The person who opens it
signs in as this person, in every organization: pass it on to no other person.
`,
      ),
      command(
        'email-link',
        'Make a link with which a person gets another email address.',
        operator(users, 'makeEmailLink'),
        [PERSON, argument('<new-email>', 'the address to give the person, in every organization')],
        `
It works once, for ${LINK_HOURS.email} hours, with the person's password. Send it to the new
address: you trust the reader of that mailbox to be that person.
`,
      ),
    ],
  ),

  group('people', 'Erase the data of a person.', [
    command(
      'erase',
      'Delete a person from all organizations, or from one, with the name in the audit log.',
      operator(erase, 'erasePerson'),
      [PERSON, YES],
      `
Contexts and payloads that name the person are customers' data: wf runs delete,
wf deliveries delete. What stays is in docs/personal-data.md.
`,
    ),
  ]),

  group('keys', 'Create, list and revoke API keys.', [
    command('create', 'Create an API key. The key is shown only this once.', inOrganization(keys, 'create'), [
      argument('[name]', 'its name, unique in the organization (default: its prefix)'),
      option('--name <name>', 'the name, given as an option'),
      option('--scopes <list>', 'what the key allows, separated by commas', parseList(SCOPES)).default(
        [...SCOPES],
        SCOPES.join(','),
      ),
      option(
        '--expires <time>',
        'when it expires: 2026-12-31, 2026-12-31T23:59:59Z, or from now: 12h, 90d',
        parseExpiry,
      ),
    ]),
    command('list', 'List the API keys, oldest first.', inOrganization(keys, 'list')),
    command('revoke', 'Revoke an API key. Every gateway rejects it within 5 seconds.', inOrganization(keys, 'revoke'), [
      argument('<key>', 'its name, prefix or id, or the whole key'),
    ]),
  ]),

  group('sources', 'List, pause and test webhook sources, and send a sample.', [
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
The endpoint cannot tell it from the payload of a run. A source that asks for
approvals refuses it.
  echo '{"order_id": "TEST-1"}' | wf sources send "Order intake" --payload -
`,
    ),
  ]),

  group('deliveries', 'Send payloads again, and delete single entries of the delivery log.', [
    command(
      'resend',
      'Send all payloads again that meet the conditions.',
      inOrganization(() => import('./operator/deliveries.ts'), 'resend'),
      [
        option('--where <field=value>', 'a condition; may be repeated', parseCondition),
        option('--rate <n>', 'payloads for each second', parseNumber(100), 10),
        option(
          '--id <id>',
          'the id of the job; a call with one that was used sends nothing (default: a new one)',
          parseId,
        ),
        option('--dry-run', 'only show what would be sent'),
      ],
      `
The fields are source, workflow, outcome, status, search, since, until and
attention (yes or no). The application sends each payload once; those of sources
that ask for approval are left out. Endpoints may act twice.
  wf deliveries resend --where source="Order intake" --where since=2h --dry-run
`,
    ),
    command('delete', 'Delete a delivery that is not one of a run.', operator(erase, 'deleteOneDelivery'), [
      argument('<id>', 'its id', parseId),
      YES,
    ]),
  ]),

  group('rules', 'Write the rules that the built-in agent follows.', [
    command('draft', 'Print a rules.yaml for a run that the built-in agent refused.', operator(runs, 'draftRules'), [
      argument('<run>', 'the id of the run; the beginning of it is enough', parseIdPrefix),
    ]),
  ]),

  group('queue', 'Show the RabbitMQ queue from which runners learn which session has work.', [
    command(
      'show',
      'Show how many messages wait, and the dead-lettered messages with the reason.',
      global(() => import('./operator/queue.ts'), 'show'),
      [limit('dead-lettered messages, oldest first', 25)],
    ),
  ]),

  group('secrets', 'Rotate the key that encrypts secrets.', [
    command(
      'rotate',
      'Encrypt every stored secret with the first key of SECRETS_KEY.',
      global(maintenance, 'rotateAllSecrets'),
      [],
      `
It is safe to repeat it and to run it while dispatchers run. The steps before
and after it are in docs/operations.md, "Rotating secrets".`,
    ),
  ]),

  command(
    'after-restore',
    'End what was under way at the moment to which a backup was restored.',
    global(maintenance, 'afterRestore'),
    [YES],
    `
Run it after the database was restored to an earlier moment, before the services
start: payloads of that time would be sent again. Runs that had not ended fail.`,
  ),
]
