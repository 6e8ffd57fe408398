import { existsSync, globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { SERVICE_NAMES } from './service-settings.ts'

const root = join(import.meta.dirname, '..')
const manifests = globSync(['package.json', '{packages,services,infra}/*/package.json'], { cwd: root })

/** Every script of the workspace as `[file, name, text]`. */
const scripts = manifests.flatMap((file) => {
  const manifest = JSON.parse(readFileSync(join(root, file), 'utf8')) as { scripts?: Record<string, string> }
  return Object.entries(manifest.scripts ?? {}).map(([name, text]) => [file, name, text] as const)
})

test('the scripts of package.json are found', () => {
  expect(scripts).toContainEqual(['package.json', 'start', 'node infra/bootstrap.mjs start'])
})

// npm runs scripts with cmd.exe on Windows. What both shells read alike: words, double quotes, and `&&` between
// commands.
test.each(scripts)('the scripts of %s mean the same to sh and cmd.exe: %s', (file, _name, text) => {
  for (const command of text.split(' && ')) {
    expect(command).toMatch(/^(?:[\w@./:=,+-]+|"[\w@./:=,+ *-]+")(?: (?:[\w@./:=,+-]+|"[\w@./:=,+ *-]+"))*$/)
    const [program = ''] = command.split(' ')
    expect([program, isProgram(program, join(root, dirname(file)))]).toEqual([program, true])
  }
})

test.each(SERVICE_NAMES)('the start script of the %s gives Node the same options as the image', (name) => {
  const [program, ...options] = startScript(name)
  expect([program, options.pop()]).toEqual(['node', 'src/main.ts'])
  const [, inImage = ''] = /^ENV NODE_OPTIONS="(.+)"$/m.exec(readFileSync(join(root, 'infra/Dockerfile'), 'utf8')) ?? []
  const flags = options.filter((option) => option.startsWith('--') && option !== '--import')
  const modules = options.filter((option) => !option.startsWith('--'))
  expect(modules).toHaveLength(1)
  const ofContainer = [...inImage.split(' '), ...composeOptions(name)]
  // The last one of each name counts.
  const effective = [...new Map(ofContainer.map((option) => [option.split('=')[0], option])).values()]
  expect(effective).toEqual([...flags, ...modules.map((module) => `--import=/app/${pathOf(name, module)}`)])
})

/**
 * Whether cmd.exe finds a program of this name: Node and npm's, or one that a dependency brings. A shell's own command
 * is none.
 */
function isProgram(name: string, folder: string): boolean {
  const folders = [folder, root].map((each) => join(each, 'node_modules/.bin', name))
  return ['node', 'npm', 'pnpm'].includes(name) || folders.some((file) => existsSync(file))
}

const folderOf = (name: string): string => join(root, 'services', name)

function startScript(name: string): string[] {
  const [, , text = ''] =
    scripts.find(([file, script]) => file === `services/${name}/package.json` && script === 'start') ?? []
  return text.split(' ')
}

/** The options that docker-compose.yml gives Node. */
function composeOptions(name: string): string[] {
  const { services } = parse(readFileSync(join(root, 'docker-compose.yml'), 'utf8')) as {
    services: Record<string, { command?: string[] }>
  }
  return services[name]?.command?.filter((part) => part.startsWith('--')) ?? []
}

/** The path of a module of the workspace, relative to the root of the repository. */
function pathOf(name: string, module: string): string {
  return relative(root, createRequire(join(folderOf(name), 'package.json')).resolve(module))
}
