import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { manifestErrors } from '../packages/database/src/manifest/index.ts'
import { createServiceToken } from '../packages/webhook-token/src/index.js'

const root = join(import.meta.dirname, '..')
const files = globSync('**/README.md', { cwd: root, exclude: ['**/node_modules', '.local*'] }).toSorted()

describe.each(files)('%s', (file) => {
  const text = readFileSync(join(root, file), 'utf8')
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link)

  test('has only links that lead to a file, a folder or a heading', () => {
    const broken = links.filter((link) => !/^https?:/.test(link) && !leadsSomewhere(file, link))
    expect(broken).toEqual([])
  })

  test('mentions only files and folders that exist', () => {
    const paths = [...text.matchAll(/`((?:services|packages|infra)\/[\w./-]+)`/g)].map(([, path = '']) => path)
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  test('runs only scripts that package.json has', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>
    }
    const run = [...text.matchAll(/\b(?:npm run (?:-s )?|pnpm (?!install)|pnpm@12 (?!install))([a-z][\w:-]*)/g)]
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(run.map(([, name]) => name)))
  })
})

describe('README.md', () => {
  const text = readFileSync(join(root, 'README.md'), 'utf8')

  test('has at most 1,000 words', () => {
    expect(text.split(/\s+/).filter((word) => word !== '').length).toBeLessThanOrEqual(1_000)
  })

  test("starts the demo's workflow", () => {
    const [, workflowId] = /\/v1\/workflows\/([0-9a-f-]{36})\/start/.exec(text) ?? []
    expect(workflowId).toEqual(expect.any(String))
    expect(readFileSync(join(root, 'infra/local-stack/demo.yaml'), 'utf8')).toContain(`id: ${workflowId}`)
  })

  test('shows a valid manifest', () => {
    expect(manifestErrors(parse(codeBlock(text, 'yaml')))).toEqual([])
  })

  test('shows the manifest of infra/local-stack/your-own.yaml, to which npm start leads', () => {
    const yourOwn = readFileSync(join(root, 'infra/local-stack/your-own.yaml'), 'utf8')
    expect(parse(yourOwn)).toEqual(parse(codeBlock(text, 'yaml')))
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
    const endpoint = spawn(process.execPath, ['--input-type=module', '--eval', onAnyPort], {
      cwd: root,
      env: { SIGNING_SECRET: secret },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      const [port] = (await once(endpoint.stdout, 'data')) as [Buffer]
      const post = async (body: object, token: string): Promise<number> => {
        const headers = { 'X-Service-Token': token, 'Content-Type': 'application/json' }
        const url = `http://127.0.0.1:${port.toString().trim()}/orders`
        return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).status
      }
      expect(await post({ type: 'service.webhook.verification' }, createServiceToken(secret))).toBe(200)
      expect(await post({ order_id: 'A-1' }, createServiceToken(secret))).toBe(200)
      expect(await post({ order_id: 'A-1' }, createServiceToken('another secret'))).toBe(401)
    } finally {
      endpoint.kill()
    }
  })
})

interface ManifestExample {
  webhook_sources: [{ endpoint_url: string; signing_secret: string }]
}

/** The first code block of a language. */
function codeBlock(markdown: string, language: string): string {
  return new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'ms').exec(markdown)?.[1] ?? ''
}

describe('infra/README.md', () => {
  test('lists the metrics of the services, and no others', () => {
    const metricName = /[`']((?:gateway|runner|webhook|sessions?)_[a-z_]+)[`'{]/g
    const sources = globSync(['services/*/src/**/*metrics*.ts', 'packages/service-kit/src/system-metrics.ts'], {
      cwd: root,
    })
    const defined = sources.flatMap((file) => [...readFileSync(join(root, file), 'utf8').matchAll(metricName)])
    const text = readFileSync(join(root, 'infra/README.md'), 'utf8')
    const listed = [...text.matchAll(/^\|(.*?)\|/gm)].flatMap(([, cell = '']) => [...cell.matchAll(metricName)])
    expect(defined).not.toEqual([])
    expect(listed.map(([, name]) => name).toSorted()).toEqual(defined.map(([, name]) => name).toSorted())
  })
})

/** Whether a relative link of a file leads to a file or folder and, if it names one, to a heading there. */
function leadsSomewhere(file: string, link: string): boolean {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? join(root, file) : join(root, dirname(file), path)
  if (!existsSync(target)) return false
  return anchor === undefined || anchorsOf(readFileSync(target, 'utf8')).includes(anchor)
}

/** The anchors that GitHub gives to the headings of a Markdown file. */
function anchorsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}
