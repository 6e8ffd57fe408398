import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from '@jest/globals'

const root = join(import.meta.dirname, '..')
const manifests = globSync(['package.json', '{packages,services,infra}/*/package.json'], { cwd: root })

/** Every script of the workspace as `[file, name, text]`. */
const scripts = manifests.flatMap((file) => {
  const manifest = JSON.parse(readFileSync(join(root, file), 'utf8')) as { scripts?: Record<string, string> }
  return Object.entries(manifest.scripts ?? {}).map(([name, text]) => [file, name, text] as const)
})

describe('the scripts of package.json', () => {
  test('are found', () => {
    expect(scripts).toContainEqual(['package.json', 'start', 'node infra/bootstrap.mjs start'])
  })

  // npm runs scripts with cmd.exe on Windows. What both shells read alike: words, double quotes, and `&&` between
  // commands.
  test.each(scripts)('of %s mean the same to sh and cmd.exe: %s', (file, _name, text) => {
    for (const command of text.split(' && ')) {
      expect(command).toMatch(/^(?:[\w@./:=,+-]+|"[\w@./:=,+ *-]+")(?: (?:[\w@./:=,+-]+|"[\w@./:=,+ *-]+"))*$/)
      const [program = ''] = command.split(' ')
      expect([program, isProgram(program, join(root, dirname(file)))]).toEqual([program, true])
    }
  })
})

/**
 * Whether cmd.exe finds a program of this name: Node and npm's, or one that a dependency brings. A shell's own command
 * is none.
 */
function isProgram(name: string, folder: string): boolean {
  const folders = [folder, root].map((each) => join(each, 'node_modules/.bin', name))
  return ['node', 'npm', 'pnpm'].includes(name) || folders.some((file) => existsSync(file))
}
