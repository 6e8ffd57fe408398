import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { defaultsOf, serviceNames, type ServiceName, settingNames, settingsOf } from './settings-of.ts'

const root = join(import.meta.dirname, '..')
const readme = readText('README.md')

describe('the settings table of README.md', () => {
  const rows = tableUnder('## Settings').map(([name = '', services = '', defaults = '']) => ({
    name: name.replaceAll('`', ''),
    services: services.split(', '),
    defaults,
  }))

  test('has every setting of every service, once', () => {
    const names = new Set(serviceNames.flatMap((service) => settingNames(service)))
    expect(rows.map((row) => row.name).toSorted()).toEqual([...names].toSorted())
  })

  test.each(rows)('says who reads $name and what it is by default', ({ name, services, defaults }) => {
    const readers = serviceNames.filter((service) => settingNames(service).includes(name))
    expect(services).toEqual(readers)
    expect(defaults).toBe(shownDefault(name, readers))
  })
})

describe('README.md', () => {
  test('names files and folders that exist', () => {
    const links = [...readme.matchAll(/\]\(([^)#:]+)\)/g)].map(([, path = '']) => path)
    const rooms = tableUnder('## The map').map(([room = '']) => room.replaceAll('`', ''))
    const mentioned = [...readme.matchAll(/(?:services|packages|infra)\/[\w./-]*\w/g)].map(([path]) => path)
    expect(rooms).not.toEqual([])
    expect([...links, ...rooms, ...mentioned].filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  test('has only links to its own headings that lead somewhere', () => {
    const headings = [...readme.matchAll(/^#+ (.+)$/gm)].map(([, text = '']) => text.toLowerCase().replaceAll(' ', '-'))
    const links = [...readme.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor]) => anchor)
    expect(headings).toEqual(expect.arrayContaining(links))
  })

  test('runs scripts that package.json has', () => {
    const { scripts } = JSON.parse(readText('package.json')) as { scripts: Record<string, string> }
    const run = [...readme.matchAll(/npm run (?:-s )?([\w:]+)/g)].map(([, name]) => name)
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(run))
  })

  test("starts the demo's workflow", () => {
    const [, workflowId] = /\/v1\/workflows\/([0-9a-f-]{36})\/start/.exec(readme) ?? []
    expect(workflowId).toEqual(expect.any(String))
    expect(readText('infra/local-stack/demo.yaml')).toContain(`id: ${workflowId}`)
  })
})

function readText(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

/** The cells of the first table under a heading, without its head. */
function tableUnder(heading: string): string[][] {
  const [, section = ''] = readme.split(`${heading}\n`)
  const lines = section.split('\n')
  const first = lines.findIndex((line) => line.startsWith('|'))
  const length = lines.slice(first).findIndex((line) => !line.startsWith('|'))
  return lines.slice(first + 2, first + length).map((line) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

/** What the table says: once where all services agree, else in their order. */
function shownDefault(name: string, services: readonly ServiceName[]): string {
  const shown = services.map((service) => {
    const byDefault = defaultsOf(service)[name]
    if (byDefault !== undefined) return byDefault === '' ? 'unset' : `\`${byDefault}\``
    return settingsOf[service].schema.required?.includes(name as never) ? 'required' : 'unset'
  })
  return (new Set(shown).size === 1 ? shown.slice(0, 1) : shown).join(', ')
}
