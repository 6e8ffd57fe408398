import { describe, expect, test } from '@jest/globals'
import { createApiKey } from '../organizations/index.ts'
import { manifestErrors, toManifest } from './manifest-errors.ts'

const organization = { name: 'Acme' }
const source = {
  name: 'Order intake',
  description: '',
  endpoint_url: 'https://acme.example/orders',
  example_request_body: { order_id: 'A-1' },
}
const trigger = { trigger_source: { slug: 'api', name: 'API' } }
const workflow = (fields: object) => ({ organization, workflows: [{ name: 'Forward', ...fields }] })
const id = '01890a5d-ac96-774b-bcce-b302099a8057'
/** A manifest in which everything is named. */
const WHOLE = {
  organization: { id, name: 'Acme', suspended: false },
  users: [{ email: 'ada@acme.test', first_name: 'Ada', last_name: 'Lovelace' }],
  api_keys: [{ name: 'ci', key: createApiKey().key, scopes: ['read', 'start'], revoked: false }],
  webhook_sources: [{ id, ...source, signing_secret: null, verify: true }],
  workflows: [
    {
      id,
      name: 'Forward',
      description: 'Send it to Order intake.',
      scope: 'a scope of tomorrow',
      is_active: true,
      auto_run: { enabled: true, frequency: 'daily' },
      users: ['ada@acme.test'],
      triggers: [
        {
          id,
          name: '',
          is_active: false,
          ...trigger,
          events: [{ slug: 'created', name: 'Created' }],
          filters: { any: ['thing', 1, null] },
          input_message: '',
          subagent_sources: [
            { name: 'Order intake', type: 'api' },
            { name: 'Researcher', type: 'platform_internal', id: null },
            { name: 'Main street', type: 'street', id },
          ],
          created_at: '2026-01-31T09:00:00Z',
        },
      ],
      files: [{ id, name: 'a.md', path: ['docs'], content: '# A' }],
      created_at: '2026-01-31T09:00:00+01:00',
      updated_at: '2026-01-31T09:00:00.123Z',
    },
  ],
  sessions: [{ id, open: true }],
}

const pathsOf = (value: unknown) => manifestErrors(value).map(({ path }) => path)
const linesOf = (value: unknown) => manifestErrors(value).map(({ path, message }) => `${path}: ${message}`)

describe('manifestErrors', () => {
  test('finds none in the smallest manifest, where everything is named, and in other values of fields that may get new ones', () => {
    const subagent_sources = [{ name: 'R', type: 'streets' }]
    const triggers = [{ trigger_source: { slug: 'app', name: 'App' }, subagent_sources }]
    for (const value of [{ organization }, WHOLE, workflow({ scope: 'team', triggers })]) {
      expect(manifestErrors(value)).toEqual([])
    }
  })

  test.each<[string, unknown, string[]]>([
    ['nothing', null, [': must be a JSON object']],
    ['an unknown name', { organization, teams: [] }, ['teams: is not a known field; remove it']],
    [
      'misspelled names and closed values',
      {
        organization: { name: 'Acme', suspend: true },
        api_keys: [{ name: 'ci', scopes: ['raed'] }],
        webhook_sources: [{ ...source, secret: 'x' }],
        workflows: [{ name: 'A', auto_run: { enabled: true, frequency: 'dialy' } }],
      },
      [
        'api_keys[0].scopes[0]: must be one of read, start; did you mean read?',
        'workflows[0].auto_run.frequency: must be one of hourly, daily, weekly, monthly; did you mean daily?',
        'organization.suspend: is not a known field; did you mean suspended?',
        'webhook_sources[0].secret: is not a known field; did you mean signing_secret?',
      ],
    ],
    [
      'an email address in two cases',
      { organization, users: [{ email: 'ada@acme.test' }, { email: 'Ada@acme.test' }] },
      ['users[1].email: is the same as users[0].email: they differ in case only, and belong to one person'],
    ],
    [
      'a key whose name has several lines',
      { organization, api_keys: [{ name: 'a\nb' }] },
      ['api_keys[0].name: must be one line, without tabs and other control characters'],
    ],
    ['a wrong type', { organization: { name: 7 } }, ['organization.name: must be a string']],
    [
      'a wrong id',
      workflow({ id: 'forward' }),
      ['workflows[0].id: must be a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057'],
    ],
    [
      'a wrong time',
      workflow({ created_at: 'yesterday' }),
      ['workflows[0].created_at: must be a time such as 2026-01-31T09:00:00Z'],
    ],
    ...['0000-01-31T09:00:00Z', '9999-12-31T23:00:00-01:00'].map((time): [string, object, string[]] => [
      `the time ${time}, which PostgreSQL does not have`,
      workflow({ created_at: time }),
      ['workflows[0].created_at: must be in the years 1 to 9999 (UTC)'],
    ]),
    [
      'a day that does not exist',
      workflow({ created_at: '2026-02-30T09:00:00Z' }),
      ['workflows[0].created_at: must be a time such as 2026-01-31T09:00:00Z'],
    ],
    [
      'no scope at all',
      { organization, api_keys: [{ name: 'ci', scopes: [] }] },
      ['api_keys[0].scopes: must have at least 1 item'],
    ],
    [
      'a schedule without a frequency',
      workflow({ auto_run: { enabled: true } }),
      ['workflows[0].auto_run.frequency: is missing: hourly, daily, weekly or monthly, since the schedule is enabled'],
    ],
    [
      'a frequency without a schedule',
      workflow({ auto_run: { enabled: null, frequency: 'daily' } }),
      ['workflows[0].auto_run.enabled: must be true or false where a frequency is given'],
    ],
    [
      'an id on a built-in subagent',
      workflow({ triggers: [{ ...trigger, subagent_sources: [{ name: 'R', type: 'platform_internal', id }] }] }),
      ['workflows[0].triggers[0].subagent_sources[0].id: must be left out where the type is platform_internal'],
    ],
    [
      'NUL in filters',
      workflow({ triggers: [{ ...trigger, filters: { a: ['b\u0000'] } }] }),
      ['workflows[0].triggers[0].filters: must be valid Unicode text without NUL or lone surrogates, throughout'],
    ],
    [
      'a URL of another scheme',
      { organization, webhook_sources: [{ ...source, endpoint_url: 'ftp://acme.example' }] },
      ['webhook_sources[0].endpoint_url: must be an https:// or http:// URL'],
    ],
    [
      'an example that looks like a verification',
      {
        organization,
        webhook_sources: [{ ...source, example_request_body: { type: 'service.webhook.verification' } }],
      },
      [
        'webhook_sources[0].example_request_body.type: must not be service.webhook.verification: receivers recognize verification requests by it',
      ],
    ],
    [
      'a key with a wrong checksum',
      { organization, api_keys: [{ name: 'ci', key: 'wfk_demo0000_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123453HdgV4' }] },
      [
        'api_keys[0].key: is not an API key: those are wfk_ + 8 letters or digits + _ + 32 more + a checksum of 6, which does not fit here; leave it out to create one',
      ],
    ],
    [
      'a file of more than 1 MiB in bytes',
      workflow({ files: [{ name: 'a.md', content: 'é'.repeat(524_289) }] }),
      ['workflows[0].files[0].content: must have at most 1 MiB (1,048,576 bytes of UTF-8)'],
    ],
    [
      'rules in a folder, whose conditions would not be enforced',
      workflow({ files: [{ name: 'rules.yaml', path: ['docs'] }] }),
      [
        'workflows[0].files[0].path: is that of no rules: the agent follows only "rules.yaml" in no folder, not "docs/rules.yaml". Name it so, or choose a name that does not look like rules',
      ],
    ],
  ])('says what is wrong with %s', (_what, value, lines) => {
    expect(linesOf(value)).toEqual(lines)
  })

  test.each<[string, object, string, string]>([
    ['emails', { users: [{ email: 'a@b' }, { email: 'a@b' }] }, 'users[1].email', 'users[0].email'],
    ['key names', { api_keys: [{ name: 'a' }, { name: 'a' }] }, 'api_keys[1].name', 'api_keys[0].name'],
    [
      'source names, ignoring case',
      { webhook_sources: [source, { ...source, name: 'ORDER INTAKE' }] },
      'webhook_sources[1].name',
      'webhook_sources[0].name',
    ],
    ['session ids', { sessions: [{ id }, { id: id.toUpperCase() }] }, 'sessions[1].id', 'sessions[0].id'],
    [
      'workflow names without ids',
      { workflows: [{ name: 'a' }, { name: 'a', id }, { name: 'a' }] },
      'workflows[2].name',
      'workflows[0].name: give each an id, or another name',
    ],
    [
      'trigger ids, over all workflows',
      {
        workflows: [
          { name: 'a', triggers: [{ ...trigger, id }] },
          { name: 'b', triggers: [{ ...trigger, id }] },
        ],
      },
      'workflows[1].triggers[0].id',
      'workflows[0].triggers[0].id',
    ],
    [
      'event slugs of one trigger',
      workflow({ triggers: [{ ...trigger, events: ['X', 'Y'].map((name) => ({ slug: 'x', name })) }] }),
      'workflows[0].triggers[0].events[1].slug',
      'workflows[0].triggers[0].events[0].slug',
    ],
    [
      'users of one workflow, ignoring case',
      workflow({ users: ['a@b', 'A@b'] }),
      'workflows[0].users[1]',
      'workflows[0].users[0]',
    ],
    [
      'locations of files',
      workflow({
        files: [
          { name: 'c', path: ['a', 'b'] },
          { name: 'b/c', path: ['a'] },
        ],
      }),
      'workflows[0].files[1]',
      'workflows[0].files[0]: two files cannot be in the same place',
    ],
  ])('refuses equal %s', (_what, parts, path, earlier) => {
    expect(linesOf({ organization, ...parts })).toEqual([`${path}: is the same as ${earlier}`])
  })

  test('lets workflows share a name when each has an id, and triggers and files across workflows', () => {
    const parts = { triggers: [trigger, trigger], files: [{ name: 'a.md' }] }
    const twins = [
      { name: 'a', id, ...parts },
      { name: 'a', ...parts },
    ]
    expect(manifestErrors({ organization, workflows: twins })).toEqual([])
  })

  test('reports every violation at once, at most one for each path', () => {
    const broken = {
      users: [{ email: 'ada' }, { mail: 'x' }],
      webhook_sources: [{ ...source, endpoint_url: 7, example_request_body: undefined }],
      workflows: [{ triggers: 'none', auto_run: { enabled: true } }],
    }
    expect(pathsOf(broken).toSorted()).toEqual([
      'organization',
      'users[0].email',
      'users[1].email',
      'users[1].mail',
      'webhook_sources[0].endpoint_url',
      'webhook_sources[0].example_request_body',
      'workflows[0].auto_run.frequency',
      'workflows[0].name',
      'workflows[0].triggers',
    ])
  })
})

test('toManifest throws an error whose message has every violation', () => {
  expect(() => toManifest({ users: [{ email: 'ada' }] })).toThrow(
    'organization: is missing\nusers[0].email: must be an email address such as ada@acme.test',
  )
})

test('a manifest has no text that PostgreSQL cannot store, in any field', () => {
  const json = JSON.stringify(WHOLE)
  const ends = [...json.matchAll(/"[^"]*"/g)].map(({ index, 0: text }) => index + text.length - 1)
  const changed = ['\\u0000', '\\ud800', '\\udc00'].flatMap((odd) =>
    ends.map((end) => `${json.slice(0, end)}${odd}${json.slice(end)}`),
  )
  expect(changed.filter((text) => manifestErrors(JSON.parse(text)).length === 0)).toEqual([])
})
