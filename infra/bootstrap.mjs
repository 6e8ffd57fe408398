// What `npm start` and `npm test` run first, on whatever Node the machine has: installs the workspace when needed, then
// goes on with the Node that is pinned in it. Plain JavaScript, since before the install there is nothing else.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const isWindows = process.platform === 'win32'
const pinnedNode = join(root, 'node_modules/node/bin', isWindows ? 'node.exe' : 'node')
const stampFile = join(root, 'node_modules/.workflow-service-install.json')
const prismaInputs = ['packages/database/prisma/schema.prisma', 'packages/database/scripts/generate-prisma-client.mjs']
const prismaClient = 'packages/database/src/generated/client.ts'

/** A fault that the user can do something about: its message is all that is printed. */
class Fault extends Error {}

const say = (line) => process.stdout.write(`${line}\n`)
const seconds = (sinceMs) => `${((Date.now() - sinceMs) / 1000).toFixed(1)} s`

async function main([command, ...args]) {
  if (command !== 'start' && command !== 'test') {
    throw new Fault('Usage: node infra/bootstrap.mjs start|test [arguments]')
  }
  checkMachine()
  listenForSignals()
  await install()
  return command === 'start' ? await runPinned(['infra/local-stack/src/main.ts', ...args]) : await test(args)
}

function checkMachine() {
  const major = Number(process.versions.node.split('.')[0])
  if (major >= 20) return
  throw new Fault(`This needs Node 20 or newer to begin with, and this is ${process.version}: get one from nodejs.org`)
}

// ------------------------------------------------------------------------------------------------------------ install

async function install() {
  const wanted = { dependencies: hashOf(manifests()), prisma: hashOf(prismaInputs), platform: platform() }
  const stamp = readStamp()
  const installed = stamp.dependencies === wanted.dependencies && stamp.platform === wanted.platform
  if (!installed || !existsSync(pinnedNode)) {
    rmSync(stampFile, { force: true })
    await installDependencies()
  } else if (stamp.prisma === wanted.prisma && existsSync(join(root, prismaClient))) {
    return
  }
  // The install made the client already when its own step ran, but not when only the schema has changed.
  const generated = await step('Generating the database client', [pinnedNode, prismaInputs[1]])
  if (generated.status !== 0) throw new Fault('The database client was not made: the lines above say why')
  writeStamp(wanted)
}

function manifests() {
  const workspace = readFileSync(join(root, 'pnpm-workspace.yaml'), 'utf8').replaceAll('\r', '')
  const listed = /^packages:\n((?: +- .*\n)+)/m.exec(workspace)[1].match(/[^\s'"-][^\s'"]*/g)
  const rooms = listed.flatMap((pattern) => {
    const folder = pattern.replace(/\/\*$/, '')
    return folder === pattern ? [folder] : readdirSync(join(root, folder)).map((room) => `${folder}/${room}`)
  })
  return ['package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml', ...rooms.map((room) => `${room}/package.json`)]
}

function hashOf(files) {
  const hash = createHash('sha256')
  for (const file of files.filter((name) => existsSync(join(root, name)))) {
    hash.update(`${file}\0`).update(readFileSync(join(root, file)))
  }
  return hash.digest('hex')
}

/** node_modules may have been carried to another machine: what is compiled in it fits one platform only. */
function platform() {
  return `${process.platform}-${process.arch}`
}

function readStamp() {
  try {
    return JSON.parse(readFileSync(stampFile, 'utf8'))
  } catch {
    return {}
  }
}

function writeStamp(stamp) {
  mkdirSync(dirname(stampFile), { recursive: true })
  writeFileSync(stampFile, `${JSON.stringify(stamp)}\n`)
}

async function installDependencies() {
  const began = Date.now()
  const pnpm = findPnpm()
  say(`Installing with pnpm ${pnpm.version}; the first time takes a minute or two …`)
  const flags = ['install', '--frozen-lockfile', '--reporter=append-only']
  const { status, output } = await run([...pnpm.command, ...flags], { env: installEnvironment(), onOutput: progress() })
  if (status !== 0) throw installFault(output)
  if (!existsSync(pinnedNode))
    throw new Fault(`There is no Node ${pinnedVersion()} for ${platform()}: use another machine`)
  say(`Installed in ${seconds(began)}.`)
}

/** An installed pnpm of the pinned major version, else the pinned one through npm. */
function findPnpm() {
  const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const version = packageManager.replace(/^pnpm@/, '').split('+')[0]
  // Outside of the workspace, where pnpm and corepack would fetch the version that package.json names.
  const found = spawnSync('pnpm', ['--version'], {
    cwd: tmpdir(),
    env: { ...process.env, COREPACK_ENABLE_DOWNLOAD_PROMPT: '0', COREPACK_ENABLE_NETWORK: '0' },
    encoding: 'utf8',
    shell: isWindows,
  })
  const installed = found.status === 0 ? found.stdout.trim() : ''
  if (installed.split('.')[0] === version.split('.')[0]) return { version: installed, command: ['pnpm'] }
  return {
    version,
    command: [...npm(), 'exec', '--yes', '--loglevel=error', `--package=pnpm@${version}`, '--', 'pnpm'],
  }
}

function npm() {
  const cli = process.env.npm_execpath
  return cli && basename(cli) === 'npm-cli.js' ? [process.execPath, cli] : ['npm']
}

function installEnvironment() {
  // CI: pnpm asks nothing and replaces a broken node_modules by itself.
  const env = { ...process.env, CI: 'true', npm_config_loglevel: 'error' }
  // With "production" there pnpm would leave out what start and test need.
  delete env.NODE_ENV
  return env
}

function progress() {
  let saidAt = Date.now()
  return (text) => {
    const counts = /Progress: resolved \d+, reused (\d+), downloaded (\d+)/g
    const last = [...text.matchAll(counts)].at(-1)
    if (!last || Date.now() - saidAt < 5000) return
    saidAt = Date.now()
    say(`  ${Number(last[1]) + Number(last[2])} packages so far …`)
  }
}

function installFault(output) {
  const causes = [
    [
      /ENOSPC|No space left on device|Disk quota exceeded|os error (28|122)\b/i,
      `no space left on the disk of ${root}: free 2 GB and run this again`,
    ],
    [
      /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|META_FETCH_FAIL|error sending request|dns error/i,
      'the npm registry cannot be reached: check the network and proxy settings, then run this again',
    ],
    [
      /EACCES|EROFS|EPERM|Permission denied|Read-only file system/i,
      `files in ${root} cannot be written: check who owns that folder`,
    ],
    [
      /OUTDATED_LOCKFILE|FROZEN_LOCKFILE/,
      'pnpm-lock.yaml does not fit the package.json files: run "pnpm install" and commit the lockfile',
    ],
    [/UNSUPPORTED_PLATFORM|no matching .* platform/i, `a package has no build for ${platform()}: use another machine`],
  ]
  const cause = causes.find(([pattern]) => pattern.test(output))?.[1]
  const last = output.trim().split('\n').slice(-15).join('\n')
  return new Fault(
    `${last}\n\nThe install failed: ${cause ?? 'the lines above say why; run this again when it is mended'}`,
  )
}

function pinnedVersion() {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).devDependencies.node
}

// --------------------------------------------------------------------------------------------------------------- test

const checkCommands = {
  typecheck: [pinnedNode, 'node_modules/typescript/bin/tsc', '--project', 'tsconfig.base.json'],
  lint: [pinnedNode, 'node_modules/oxlint/bin/oxlint', '--type-aware', '--deny-warnings'],
  format: [pinnedNode, 'node_modules/oxfmt/bin/oxfmt', '--check'],
}

async function test(args) {
  const { typecheck, lint, format } = checkCommands
  const checks = [await step('Type-check', typecheck), await step('Lint', lint), await step('Format', format)]
  say('Tests:')
  const folder = mkdtempSync(join(tmpdir(), 'workflow-service-counts-'))
  const countsFile = join(folder, 'counts.json')
  const jest = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js']
  const status = await runPinned([...jest, '--config', 'infra/jest.config.mjs', ...args], {
    TEST_COUNTS_FILE: countsFile,
  })
  const counts = existsSync(countsFile) ? JSON.parse(readFileSync(countsFile, 'utf8')) : { passed: 0, failed: 0 }
  rmSync(folder, { recursive: true, force: true })
  const [interrupted] = current.signals
  if (interrupted) return exitStatus(null, interrupted)
  const broken = checks.filter((check) => check.status !== 0)
  if (broken.length > 0) say(`Failed before the tests: ${broken.map(({ name }) => name).join(', ')} (see above)`)
  say(`${counts.passed} passed, ${counts.failed} failed`)
  return broken.length > 0 ? 1 : status
}

/** Says how long it took; shows the output only when it failed. */
async function step(name, command) {
  const began = Date.now()
  const { status, output } = await run(command)
  say(`${name}: ${status === 0 ? 'done' : 'FAILED'} (${seconds(began)})`)
  if (status !== 0) say(output.trimEnd())
  return { name, status }
}

// ---------------------------------------------------------------------------------------------------------- processes

/** The child of the moment, and the signals that came for this process. */
const current = { child: undefined, inForeground: false, signals: new Set() }

function listenForSignals() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => interrupt(signal))
  // npm passes signals on, but when it is killed itself, nobody tells.
  const parent = process.ppid
  if (!process.env.npm_lifecycle_event) return
  setInterval(() => process.ppid === parent || interrupt('SIGTERM'), 1000).unref()
}

function interrupt(signal) {
  // npm repeats what the terminal has sent to all already.
  if (current.signals.has(signal)) return
  current.signals.add(signal)
  if (!current.child) process.exit(exitStatus(null, signal))
  // From a terminal, Ctrl-C reaches the child too. Without one, the signal was meant for this process alone.
  if (!current.inForeground) current.child.kill()
  else if (signal !== 'SIGINT' || !process.stdin.isTTY) current.child.kill(signal)
}

/** Runs a step in the background and resolves to its exit status and output. */
async function run([command, ...args], { env = process.env, onOutput = () => {} } = {}) {
  const shell = isWindows && command !== process.execPath && command !== pinnedNode
  const child = spawn(command, args, { cwd: root, env, shell, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
      onOutput(String(chunk))
    })
  }
  const status = await untilClosed(child, false)
  const [signal] = current.signals
  if (signal) process.exit(exitStatus(null, signal))
  return { status, output }
}

/** Runs the pinned Node in the foreground and resolves to its exit status. */
async function runPinned(args, extraEnv = {}) {
  const child = spawn(pinnedNode, args, { cwd: root, env: { ...process.env, ...extraEnv }, stdio: 'inherit' })
  return await untilClosed(child, true)
}

function untilClosed(child, inForeground) {
  Object.assign(current, { child, inForeground })
  return new Promise((resolve, reject) => {
    child.on('error', (error) => reject(new Fault(`${child.spawnfile} cannot be run: ${error.message}`)))
    child.on('close', (code, signal) => {
      current.child = undefined
      resolve(exitStatus(code, signal))
    })
  })
}

/** As a shell tells it: a signal is 128 and its number. */
function exitStatus(code, signal) {
  return code ?? 128 + (constants.signals[signal] ?? 0)
}

function fail(error) {
  process.stderr.write(`${error instanceof Fault ? error.message : error.stack}\n`)
  return 1
}

process.exitCode = await main(process.argv.slice(2)).catch(fail)
