import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join, matchesGlob, relative } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from '@jest/globals'
import { useTestFolder } from '../packages/testkit/src/use-test-folder.ts'
import { findPnpm } from './find-pnpm.mjs'

const root = join(import.meta.dirname, '..')
const stages = readStages(readFileSync(join(root, 'infra/Dockerfile'), 'utf8'))
const ignoreRules = readFileSync(join(root, '.dockerignore'), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))

/** An install and the start of five programs, on a busy machine. */
const INSTALL_MS = 300_000

describe('the image', () => {
  const app = useTestFolder()

  // Does what the stages `installed` and `sources` do, with their commands, in another folder and on this machine's
  // pnpm store.
  test(
    'has every package that the services and wf load, with the install of its Dockerfile',
    async () => {
      copyInto(app, stage('pnpm').copied)
      for (const folder of stage('manifests').copied) {
        copyInto(app, globSync(`${folder}/*/package.json`, { cwd: root }))
      }
      const [install = '', ...pruning] = stage('installed').run.join(' && ').split(' && ')
      // npm has this pnpm. What it needs of the environment to ask the registry again is not here: behind some proxies
      // it would wait for 70 s.
      const offline = { npm_config_prefer_offline: 'true' }
      expect(await runShell(app, pnpmCommand(install), offline)).toEqual({ status: 0, output: expect.any(String) })
      expect(pruning.length).toBeGreaterThan(0)
      for (const command of pruning) expect(await runShell(app, command)).toEqual({ status: 0, output: '' })

      copyInto(app, stage('sources').copied)
      // The stage `generated` makes it as `pnpm generate` does.
      copyInto(app, ['packages/database/src/generated'], () => true)
      const [, options = ''] = /NODE_OPTIONS="(.+)"/.exec(lastStage().lines.join('\n')) ?? []
      const start = lastStage().run.at(-1) ?? ''
      expect(start).toContain('services/*/src/main.ts')
      const env = { NODE_ENV: 'production', NODE_OPTIONS: options.replaceAll('/app/', `${app}/`), LOCAL_DIR: app }
      // In a file of its own: another run of this test may be writing to /tmp/output.
      const command = start.replaceAll('/tmp/output', join(app, 'output'))
      expect(await runShell(app, command, env)).toEqual({ status: 0, output: '' })
    },
    INSTALL_MS,
  )

  test('runs as a user that can write nothing but the compile cache', () => {
    const { lines } = lastStage()
    const user = lines.findIndex((line) => line.startsWith('USER '))
    expect(lines[user]).toBe('USER node')
    expect(lines.slice(user + 1).filter((line) => /^(?:USER|COPY|ADD)\b/.test(line))).toEqual([])
    const asRoot = lines.slice(0, user)
    expect(asRoot.filter((line) => /--chown|--chmod|\bchown\b|\bchmod\b/.test(line))).toEqual([])
    expect(asRoot.filter((line) => line.startsWith('RUN '))).toEqual([
      'RUN install --directory --owner=node node_modules/.cache',
    ])
  })

  test('gets no secret: not as an argument of the build, not in its environment, and from no file', () => {
    const variables = stages.flatMap(({ lines }) => lines.filter((line) => /^(?:ARG|ENV) /.test(line)))
    expect(variables.filter((line) => /secret|token|password|key|credential|_URL/i.test(line))).toEqual([])
    const secretFiles = ['.env', '.env.example', '.npmrc', '.local/env', '.git/config', 'services/app/.env', 'app.log']
    const others = ['packages/cli/.local/env', 'packages/database/.npmrc', 'services/gateway/gateway.log', 'acme.yaml']
    expect([...secretFiles, ...others].filter(isLetIn)).toEqual([])
  })

  test('is built of the sources alone: no tests, no other test tools, nothing that was installed or built here', () => {
    const files = globSync('{*,.*,{packages,services,infra}/**}', { cwd: root, exclude: (path) => !isWanted(path) })
    const letIn = files.filter(isLetIn)
    expect(letIn).toEqual(expect.arrayContaining(['package.json', '.pnpmfile.mjs', 'services/app/src/main.ts']))
    const unwanted = /(?:^|\/)(?:test|node_modules|generated)\/|\.test\.ts$|^infra\//
    expect(letIn.filter((file) => unwanted.test(file))).toEqual([])
  })

  test('comes from images whose name is an argument or a stage, so that they can be pinned by digest', () => {
    const bases = stages.map(({ from }) => from)
    const names = stages.map(({ name }) => name)
    expect(bases.filter((base) => base !== '${NODE_IMAGE}' && !names.includes(base))).toEqual([])
  })
})

function readStages(dockerfile: string) {
  const all = dockerfile
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
  const starts = all.flatMap((line, index) => (line.startsWith('FROM ') ? [index] : []))
  return starts.map((start, index) => {
    const [, from = '', name = ''] = /^FROM (\S+)(?: AS (\S+))?$/.exec(all[start] ?? '') ?? []
    const lines = all.slice(start + 1, starts[index + 1]).filter((line) => line !== '')
    return {
      name,
      from,
      /** The instructions, each on one line. */
      lines,
      /** What it copies from the build context. */
      copied: lines.flatMap((line) => /^COPY (?!--)(.+) \S+$/.exec(line)?.[1]?.split(' ') ?? []),
      /** Its commands, without the options of RUN. */
      run: lines.flatMap((line) => /^RUN (?:--\S+ )*(.+)$/.exec(line)?.[1] ?? []),
    }
  })
}

function stage(name: string) {
  const found = stages.find((each) => each.name === name)
  if (!found) throw new Error(`infra/Dockerfile has no stage ${name}`)
  return found
}

function lastStage() {
  return stages.at(-1)!
}

/** The last rule that matches decides, as for Docker. A rule for a folder holds for everything in it. */
function isLetIn(file: string): boolean {
  const parts = file.split('/')
  const paths = parts.map((_part, index) => parts.slice(0, index + 1).join('/'))
  let isIgnored = false
  for (const rule of ignoreRules) {
    const pattern = rule.replace(/^!/, '')
    if (paths.some((path) => path === pattern || matchesGlob(path, pattern))) isIgnored = !rule.startsWith('!')
  }
  return !isIgnored
}

function isWanted(path: string): boolean {
  return !/(?:^|\/)(?:node_modules|\.git|dist[^/]*|screenshots)$/.test(path)
}

/** Copies files and folders of the repository, of folders only what .dockerignore lets in. */
function copyInto(folder: string, paths: readonly string[], filter = isLetIn): void {
  for (const path of paths) {
    mkdirSync(join(folder, dirname(path)), { recursive: true })
    cpSync(join(root, path), join(folder, path), {
      recursive: true,
      filter: (source) => filter(relative(root, source)),
    })
  }
}

/** The command of the Dockerfile, with the pnpm that package.json names. */
function pnpmCommand(install: string): string {
  const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { packageManager: string }
  const { command } = findPnpm(packageManager.replace('pnpm@', ''))
  expect(install).toMatch(/^pnpm install .*--frozen-lockfile .*--prod /)
  // Its path may have quotes.
  const words = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`)
  return install.replace(/^pnpm/, `${words.join(' ')} --prefer-offline`)
}

async function runShell(cwd: string, command: string, env: Record<string, string> = {}) {
  expect(existsSync(cwd)).toBe(true)
  const PATH = `${dirname(process.execPath)}:${process.env['PATH']}`
  const child = spawn('/bin/sh', ['-c', `exec 2>&1; ${command}`], {
    cwd,
    env: { HOME: process.env['HOME'], CI: 'true', ...env, PATH },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [output] = await Promise.all([text(child.stdout), once(child, 'close')])
  return { status: child.exitCode, output }
}
