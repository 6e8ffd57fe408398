import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { manifestErrors } from '../packages/database/src/manifest/index.ts'
import { MAINTENANCE as APP_TASKS } from '../services/app/src/maintenance.ts'
import { MAINTENANCE as DISPATCHER_TASKS } from '../services/dispatcher/src/maintenance.ts'
import { MAINTENANCE as GATEWAY_TASKS } from '../services/gateway/src/maintenance.ts'
import { DEFAULT_TIMING as RUNNER_TIMING } from '../services/runner/src/runner-context.ts'
import { createServiceToken } from '../packages/webhook-token/src/index.js'

const root = join(import.meta.dirname, '..')
// Patterns would be joined with the root, whose name may have brackets.
const exclude = (path: string): boolean => /(^|\/)(node_modules|generated|dist)$|^\.local/.test(path)
const documents = globSync('**/*.md', { cwd: root, exclude }).toSorted()
const ENDINGS = 'ts,tsx,js,mjs,sql,prisma,css,yaml'
const sources = globSync(`{.ci,infra,packages,services}/**/*.{${ENDINGS}}`, { cwd: root, exclude })
const notTests = sources.filter((file) => !file.endsWith('.test.ts') && !file.includes('/test/'))
const read = (file: string): string => readFileSync(join(root, file), 'utf8')

/** The most words of a README. The others have two screens. */
const MOST_WORDS: Record<string, number> = {
  'README.md': 700,
  'packages/contract/README.md': 4_000,
  // Twelve trials, and what they measured.
  'infra/trials/README.md': 1_400,
}

// The guides of the gateway link to articles of its page; its own tests follow these.
describe.each(documents.filter((file) => !file.includes('/guides/')))('%s', (file) => {
  const text = read(file)

  test('has only links that lead to a file, a folder or a heading', () => {
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link)
    expect(links.filter((link) => !/^https?:/.test(link) && !leadsSomewhere(file, link))).toEqual([])
  })

  test('mentions only files and folders that exist', () => {
    const paths = [...text.matchAll(/`((?:services|packages|infra|docs)\/[\w./-]+)`/g)].map(([, path = '']) => path)
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  test('runs only scripts that package.json has', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    const run = /\b(?:npm run (?:-s )?|pnpm (?!install|audit|sbom)|pnpm@12 (?!install))([a-z][\w:-]*)/g
    const names = [...text.matchAll(run)].map(([, name]) => name)
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(names))
  })
})

test('the architecture says which process writes each table', () => {
  const migrations = sources.filter((file) => file.startsWith('packages/database/migrations/')).map(read)
  const tables = migrations.flatMap((text) => [...text.matchAll(/^CREATE TABLE (\w+)/gm)].map(([, name]) => name))
  expect(tables.length).toBeGreaterThan(40)
  const architecture = read('docs/architecture.md')
  expect(tables.filter((table) => !new RegExp(`\\b${table}\\b`).test(architecture))).toEqual([])
})

const readmes = documents.filter((file) => basename(file) === 'README.md')
test.each(readmes)('%s is not longer than its readers have time', (file) => {
  const words = read(file).match(/\S*[\p{L}\p{N}]\S*/gu) ?? []
  expect(words.length).toBeLessThanOrEqual(MOST_WORDS[file] ?? 900)
})

test('comments and documents refer to documents and headings that exist', () => {
  const files = [...notTests, ...documents, 'docker-compose.yml', '.env.example', 'infra/Dockerfile']
  const references = files.flatMap(referencesIn)
  expect(references.length).toBeGreaterThan(100)
  expect(references.filter(({ file, document, heading }) => !isThere(file, document, heading))).toEqual([])
})

test('comments and statements end at column 120', () => {
  const long = sources.flatMap((file) => {
    const isLimited = file.includes('/sql/') ? /^/ : file.endsWith('.sql') ? /^\s*--/ : /^\s*(?:\/\/|\/\*|\* )/
    const lines = read(file).split('\n')
    return lines.flatMap((line, index) => (line.length > 120 && isLimited.test(line) ? [`${file}:${index + 1}`] : []))
  })
  expect(long).toEqual([])
})

/**
 * The references of a file to documents: by a path, by `contract README`, or by `its README`, each with or without a
 * heading. The text of a comment is joined first, because a reference may go on in the next line.
 */
function referencesIn(file: string) {
  const text = read(file).replaceAll(/\s*\n\s*(?:\*|\/\/|--|#)?\s*/g, ' ')
  const withHeading = [...text.matchAll(/((?:[\w./-]+\.md|contract README|\(README)`?), \\?"([^"\\]+)/g)]
  const paths = [...text.matchAll(/(?:\.\.?|docs|infra|packages|services)\/[\w./-]*\.md\b/g)]
  return [...withHeading, ...paths].map(([path, document = path, heading]) => ({
    file,
    document: document.replaceAll(/[`(]/g, ''),
    heading,
  }))
}

/**
 * Whether a document exists, seen from the root, the file or its package, and has the heading or a paragraph that
 * begins so.
 */
function isThere(file: string, document: string, heading: string | undefined): boolean {
  const name = document.replace(/^contract README$/, 'packages/contract/README.md').replace(/^README$/, 'README.md')
  const [top = '', packageName = ''] = file.split('/')
  const found = ['.', dirname(file), join(top, packageName)]
    .map((folder) => join(folder, name))
    .find((path) => existsSync(join(root, path)))
  return found !== undefined && (heading === undefined || headingsOf(read(found)).includes(heading))
}

function headingsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading)
}

describe('README.md', () => {
  const text = read('README.md')

  test("starts the demo's workflow", () => {
    const [, workflowId] = /\/v1\/workflows\/([0-9a-f-]{36})\/start/.exec(text) ?? []
    expect(workflowId).toEqual(expect.any(String))
    expect(read('infra/local-stack/demo.yaml')).toContain(`id: ${workflowId}`)
  })

  test('shows a valid manifest', () => {
    expect(manifestErrors(parse(codeBlock(text, 'yaml')))).toEqual([])
  })

  test('shows the manifest of infra/local-stack/your-own.yaml, to which npm start leads', () => {
    expect(parse(read('infra/local-stack/your-own.yaml'))).toEqual(parse(codeBlock(text, 'yaml')))
  })

  test('shows an endpoint that accepts requests signed with the secret of the manifest, and no others', async () => {
    const [, secret = ''] = /^SIGNING_SECRET='(.+)' node endpoint\.mjs/m.exec(text) ?? []
    const [source] = (parse(codeBlock(text, 'yaml')) as ManifestExample).webhook_sources
    expect(source.signing_secret).toBe(secret)
    expect(text).toContain(`listen(${new URL(source.endpoint_url).port})`)

    const onAnyPort = codeBlock(text, 'js').replace(
      /\.listen\(\d+\)/,
      ".listen(0, '127.0.0.1', function () { console.log(this.address().port) })",
    )
    using endpoint = spawn(process.execPath, ['--input-type=module', '--eval', onAnyPort], {
      cwd: root,
      env: { SIGNING_SECRET: secret },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [port] = (await once(endpoint.stdout, 'data')) as [Buffer]
    const post = async (body: object, token: string): Promise<number> => {
      const headers = { 'X-Service-Token': token, 'Content-Type': 'application/json' }
      const url = `http://127.0.0.1:${port.toString().trim()}/orders`
      return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).status
    }
    expect(await post({ type: 'service.webhook.verification' }, await createServiceToken(secret))).toBe(200)
    expect(await post({ order_id: 'A-1' }, await createServiceToken(secret))).toBe(200)
    expect(await post({ order_id: 'A-1' }, await createServiceToken('another secret'))).toBe(401)
  })
})

interface ManifestExample {
  webhook_sources: [{ endpoint_url: string; signing_secret: string }]
}

/** The first code block of a language. */
function codeBlock(markdown: string, language: string): string {
  return new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'ms').exec(markdown)?.[1] ?? ''
}

test('docs/operations.md lists the metrics of the services, and no others', () => {
  const firstCells = [...read('docs/operations.md').matchAll(/^\|(.*?)\|/gm)].map(([, cell = '']) => cell)
  const metricName = /[`']((?:gateway|runner|webhook|sessions?)_[a-z_]+)[`'{]/g
  const isOfMetrics = /^services\/[^/]+\/src\/.*metrics|service-kit\/src\/system-metrics/
  const files = notTests.filter((file) => isOfMetrics.test(file))
  const defined = files.flatMap((file) => [...read(file).matchAll(metricName)]).map(([, name = '']) => name)
  const listed = firstCells.flatMap((cell) => [...cell.matchAll(metricName)]).map(([, name = '']) => name)
  expect(defined).not.toEqual([])
  expect(listed.toSorted()).toEqual(defined.toSorted())
})

test('docs/operations.md lists what the services do on a timer, with its interval and statements', () => {
  const tasks = { dispatcher: DISPATCHER_TASKS, app: APP_TASKS, gateway: GATEWAY_TASKS }
  const defined = Object.entries(tasks).flatMap(([service, list]) =>
    list.map(({ name, intervalMs, statements }) => [service, name, durationOf(intervalMs), ...statements]),
  )
  const [, timers = ''] = read('docs/operations.md').split('\n## Timers\n')
  const rows = [...timers.replace(/\n## [^]*/, '').matchAll(/^\| (dispatcher|app|gateway) .*$/gm)].map(([row]) => {
    const [service = '', name = '', interval = '', statements = ''] = row.slice(2).split(/ +\| */)
    return [service, name, interval, ...[...statements.matchAll(/`(\w+)`/g)].map(([, statement = '']) => statement)]
  })
  expect(rows).toEqual(defined)
  const { sweepMs, checkRunnersMs, renewMs, autoRunMs, trialMs } = RUNNER_TIMING
  const ofRunner = [...timers.matchAll(/^\| runner +\| [^|]+\| ([^|]+?) +\|/gm)].map(([, interval]) => interval)
  expect(ofRunner).toEqual([sweepMs, checkRunnersMs, renewMs, autoRunMs, trialMs, trialMs].map(durationOf))
})

function durationOf(ms: number): string {
  if (ms % 3_600_000 === 0) return `${ms / 3_600_000} h`
  return ms % 60_000 === 0 ? `${ms / 60_000} min` : `${ms / 1_000} s`
}

/** Whether a relative link of a file leads to a file or folder and, if it names one, to a heading there. */
function leadsSomewhere(file: string, link: string): boolean {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? join(root, file) : join(root, dirname(file), path)
  if (!existsSync(target)) return false
  return anchor === undefined || anchorsOf(readFileSync(target, 'utf8')).includes(anchor)
}

/** The anchors that GitHub gives to the headings of a Markdown file. */
function anchorsOf(markdown: string): string[] {
  return headingsOf(markdown).map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}
