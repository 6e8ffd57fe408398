import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from '@jest/globals'

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
    const run = [...text.matchAll(/\b(?:npm run (?:-s )?|pnpm (?!install)|pnpm@12 (?!install))([a-z][\w:]*)/g)]
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
})

describe('infra/README.md', () => {
  test('lists the metrics of the services, and no others', () => {
    const metricName = /[`']((?:gateway|runner|webhook|sessions?)_[a-z_]+)[`'{]/g
    const sources = globSync('services/*/src/**/*metrics*.ts', { cwd: root })
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
