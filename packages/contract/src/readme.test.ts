import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { WHO } from './app/operations.ts'
import { EVENT_TOPICS } from './app/overview.ts'
import { LINK_KINDS } from './app/sign-in.ts'
import { ERROR_CODES, ERROR_MEANINGS, type ErrorCode, FIELD_MEANINGS } from './errors.ts'
import { INTERNAL_OPERATIONS, type InternalOperation, VERIFY_MODES } from './internal/operations.ts'
import * as internalResources from './internal/resources.ts'
import { STEP_KINDS } from './journal.ts'
import * as limits from './limits.ts'
import * as manifest from './manifest.ts'
import { type Operation, OPERATIONS } from './public/operations.ts'
import * as publicResources from './public/resources.ts'

const SECTIONS = [
  'Resources',
  'Public API',
  'Authentication',
  'Idempotency',
  'Trace context',
  'Pagination and search',
  'Starts and sessions',
  'Runs',
  'The journal',
  'The prompt of a model',
  'The built-in agent',
  'Rules',
  'Webhook sources',
  'Verification request',
  'Payload request',
  'Service token',
  'Endpoint addresses',
  'Deliveries',
  'Retention',
  'Approvals',
  'Internal API',
  'Application',
  'Errors',
  'Limits',
  'Queue messages',
  'Manifest',
  'Versioning',
]

const repository = join(import.meta.dirname, '../../..')
const readme = readFileSync(join(repository, 'packages/contract/README.md'), 'utf8')
const sectionTexts = new Map(
  readme
    .split(/^## /m)
    .slice(1)
    .map((text) => [text.slice(0, text.indexOf('\n')), text]),
)

/** The paths of all files that are read by people: code, statements and documents. */
function filesOfRepository(): string[] {
  return globSync('{packages,services,infra}/**/*.{ts,js,mjs,tsx,sql,prisma,md}', {
    cwd: repository,
    exclude: (path) => /(?:^|\/)(?:node_modules|generated)$/.test(path),
  })
}

/** The rows of the table in the section whose first column is titled `title`, by column title. */
function readTable(section: string, title: string, after = ''): Record<string, string>[] {
  const text = sectionTexts.get(section) ?? ''
  const lines = text.slice(text.indexOf(after)).split('\n')
  const start = lines.findIndex((line) => splitRow(line)[0] === title)
  const end = lines.findIndex((line, index) => index > start && !line.startsWith('|'))
  const titles = splitRow(lines[start] ?? '')
  return lines.slice(start + 2, end).map((line) => {
    const cells = splitRow(line)
    return Object.fromEntries(titles.map((column, index) => [column, cells[index] ?? '']))
  })
}

function splitRow(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim())
}

/** The names in code style, which a cell may list or follow with a remark in parentheses. */
function namesIn(cell: string): string[] {
  return [...cell.replaceAll(/\([^)]*\)/g, '').matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? '')
}

function columnNames(rows: Record<string, string>[], title: string): string[] {
  return rows.flatMap((row) => namesIn(row[title] ?? ''))
}

function propertiesOf(schema: unknown): string[] {
  return Object.keys((schema as { properties: object }).properties)
}

describe('the README of the contract', () => {
  test('has the sections that docstrings refer to', () => {
    expect([...sectionTexts.keys()]).toEqual(SECTIONS)
  })

  test('is referred to by the names of its sections', () => {
    const files = filesOfRepository()
    expect(files.length).toBeGreaterThan(100)
    const wrong = files.flatMap((file) => {
      const text = readFileSync(join(repository, file), 'utf8').replaceAll(/\s*\n\s*(?:\*|\/\/|--)?\s*/g, ' ')
      const references = [...text.matchAll(/contract README, "([^"(]+)"/g)].map(([, section = '']) => section)
      return references.filter((section) => !sectionTexts.has(section)).map((section) => ({ file, section }))
    })
    expect(wrong).toEqual([])
  })

  test('is referred to by no numbers of sections, which it does not have', () => {
    const numbered = filesOfRepository().filter((file) =>
      /\b(?:contract|design) \d+(?:\.\d+)?\b/i.test(readFileSync(join(repository, file), 'utf8')),
    )
    expect(numbered).toEqual([])
  })

  test('links only to its own sections', () => {
    const anchors = SECTIONS.map((section) => section.toLowerCase().replaceAll(' ', '-'))
    for (const [, anchor] of readme.matchAll(/\]\(#([^)]+)\)/g)) expect(anchors).toContain(anchor)
  })

  test('lists every error code with its status and meaning', () => {
    const rows = readTable('Errors', 'Code').map((row) => [
      ...namesIn(row['Code'] ?? ''),
      Number(row['Status']),
      row['When']?.replace(/^(?:application|internal): /, ''),
    ])
    expect(rows).toEqual(
      Object.entries(ERROR_CODES).map(([code, status]) => [code, status, ERROR_MEANINGS[code as ErrorCode]]),
    )
  })

  test('lists every field code with its meaning', () => {
    const rows = readTable('Errors', 'Field code').map((row) => [...namesIn(row['Field code'] ?? ''), row['Meaning']])
    expect(rows).toEqual(Object.entries(FIELD_MEANINGS))
  })

  test('lists every limit of this package with its value', () => {
    const factors: Record<string, number> = { s: 1_000, KiB: 1_024, MiB: 1_024 * 1_024 }
    const rows = readTable('Limits', 'Limit').flatMap((row) => {
      const [amount = '', unit = ''] = (row['Value'] ?? '').split(' ')
      return namesIn(row['Defined by'] ?? '').map((name) => [
        name,
        Number(amount.replace(',', '')) * (factors[unit] ?? 1),
      ])
    })
    expect(Object.fromEntries(rows)).toEqual({ ...limits })
  })

  test.each([
    ['Organization', publicResources.OrganizationOut],
    ['Workflow', publicResources.WorkflowOut],
    ['AutoRun', publicResources.AutoRunOut],
    ['User', publicResources.UserOut],
    ['Trigger', publicResources.TriggerOut],
    ['SubagentSource', publicResources.SubagentSourceOut],
    ['File', publicResources.FileOut],
  ])('lists the fields of %s', (resource, schema) => {
    const rows = readTable('Resources', 'Field', `**${resource}**`)
    expect(columnNames(rows, 'Field')).toEqual(propertiesOf(schema))
  })

  test('lists the fields of a start, a webhook source and a delivery', () => {
    expect(columnNames(readTable('Starts and sessions', 'Field'), 'Field')).toEqual(
      propertiesOf(publicResources.WorkflowStartIn),
    )
    expect(columnNames(readTable('Webhook sources', 'Field'), 'Field')).toEqual(
      propertiesOf(internalResources.WebhookSourceIn),
    )
    expect(columnNames(readTable('Deliveries', 'Field'), 'Field')).toEqual(propertiesOf(internalResources.DeliveryOut))
  })

  test('lists every operation of the public API', () => {
    const rows = readTable('Public API', 'Operation').map((row) => [
      ...namesIn(row['Operation'] ?? ''),
      ...namesIn(row['Scope'] ?? ''),
      Number(row['Success']),
    ])
    const operations = Object.values<Operation>(OPERATIONS)
    expect(rows).toEqual(
      operations.map(({ method, path, scope, success }) => [`${method.toUpperCase()} ${path}`, scope, success.status]),
    )
  })

  test('lists every operation of the internal API', () => {
    const listed = columnNames(readTable('Internal API', 'Operation'), 'Operation').map((text) =>
      text.replace('…', '/internal/organizations/{o}').replace(/\?.*/, ''),
    )
    const operations = Object.values<InternalOperation>(INTERNAL_OPERATIONS).map(({ method, path }) => {
      const shortPath = path.replace('{organization_id}', '{o}').replace('{source_id}', '{s}')
      return `${method.toUpperCase()} ${shortPath}`
    })
    expect(listed.toSorted()).toEqual(operations.toSorted())
  })

  test('lists who may call, the links and the hints of the application', () => {
    expect(columnNames(readTable('Application', '`who`'), '`who`')).toEqual([...WHO])
    expect(columnNames(readTable('Application', 'Link'), 'Link')).toEqual([...LINK_KINDS])
    const hints = /\*\*Hints\.\*\*[^:]*\{"topics":\[…\]\}`:([^.]*)\./.exec(sectionTexts.get('Application') ?? '')
    expect(namesIn(hints?.[1] ?? '')).toEqual([...EVENT_TOPICS])
  })

  test('lists every delivery outcome, verification reason, verification mode and kind of step', () => {
    expect(columnNames(readTable('Deliveries', 'Outcome'), 'Outcome')).toEqual([...internalResources.DELIVERY_OUTCOMES])
    const reasons = columnNames(readTable('Webhook sources', '`reason`'), '`reason`')
    expect(reasons.toSorted()).toEqual([...internalResources.VERIFICATION_REASONS].toSorted())
    expect(columnNames(readTable('Internal API', 'Value'), 'Value')).toEqual([...VERIFY_MODES])
    expect(columnNames(readTable('The journal', 'Kind'), 'Kind')).toEqual([...STEP_KINDS])
  })

  test.each([
    ['organization', manifest.ManifestOrganization],
    ['users[]', manifest.ManifestUser],
    ['api_keys[]', manifest.ManifestApiKey],
    ['webhook_sources[]', manifest.ManifestWebhookSource],
    ['workflows[]', manifest.ManifestWorkflow],
    ['workflows[].auto_run', manifest.ManifestAutoRun],
    ['workflows[].triggers[]', manifest.ManifestTrigger],
    ['workflows[].files[]', manifest.ManifestFile],
    ['sessions[]', manifest.ManifestSession],
  ])('lists the fields of %s in a manifest, the required ones in bold', (path, schema) => {
    const cell = readTable('Manifest', 'Path').find((row) => row['Path'] === `\`${path}\``)?.['Fields (**required**)']
    const withoutRemarks = (cell ?? '').replaceAll(/\([^)]*\)/g, '')
    expect(namesIn(withoutRemarks)).toEqual(propertiesOf(schema))
    const bold = [...withoutRemarks.matchAll(/\*\*`([^`]+)`\*\*/g)].map(([, name]) => name)
    expect(bold).toEqual((schema as { required?: string[] }).required ?? [])
  })
})
