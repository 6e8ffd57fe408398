import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, relative } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { SERVICE_NAMES } from './service-settings.ts'

const root = join(import.meta.dirname, '..')

describe('the start script', () => {
  test.each(SERVICE_NAMES)(
    'of the %s loads all of its code: it reports the settings that are missing',
    async (name) => {
      const [program = '', ...args] = startScript(name)
      expect(program).toBe('node')
      const child = spawn(process.execPath, args, { cwd: folderOf(name), env: {} })
      let output = ''
      child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
      child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
      await once(child, 'close')
      expect(output).toContain('DATABASE_URL is missing')
      expect(child.exitCode).toBe(1)
    },
  )

  test.each(SERVICE_NAMES)('of the %s gives Node the same options as the image', (name) => {
    const options = startScript(name).slice(1, -1)
    const [, inImage = ''] =
      /^ENV NODE_OPTIONS="(.+)"$/m.exec(readFileSync(join(root, 'infra/Dockerfile'), 'utf8')) ?? []
    const flags = options.filter((option) => option.startsWith('--') && option !== '--import')
    const modules = options.filter((option) => !option.startsWith('--'))
    expect(modules).toHaveLength(1)
    const ofContainer = [...inImage.split(' '), ...composeOptions(name)]
    // The last one of each name counts.
    const effective = [...new Map(ofContainer.map((option) => [option.split('=')[0], option])).values()]
    expect(effective).toEqual([...flags, ...modules.map((module) => `--import=/app/${pathOf(name, module)}`)])
  })
})

const folderOf = (name: string): string => join(root, 'services', name)

function startScript(name: string): string[] {
  const { scripts } = JSON.parse(readFileSync(join(folderOf(name), 'package.json'), 'utf8')) as {
    scripts: { start: string }
  }
  return scripts.start.split(' ')
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
