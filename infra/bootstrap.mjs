// Runs `npm start` and `npm test` on any Node from 20 on: installs the workspace if needed, then continues with this
// Node if it is new enough, else with the one that the workspace pins. Plain JavaScript without dependencies, because
// nothing else exists before the install.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findPnpm } from './find-pnpm.mjs'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))
const IS_WINDOWS = process.platform === 'win32'
const PLATFORM = `${process.platform}-${process.arch}`
/** The first Node with `crypto.argon2`, which hashes the passwords of the application. */
const NEEDED_NODE = '24.7.0'
/** The Node that runs everything after the install. */
const NODE = isAtLeast(process.versions.node, NEEDED_NODE) ? process.execPath : pinnedNode()

/** An error that the user can fix. Only its message is printed. */
class UserError extends Error {}

async function main([command, ...args]) {
  if (command !== 'start' && command !== 'test') {
    throw new UserError('Usage: node infra/bootstrap.mjs start|test [arguments]')
  }
  if (NODE === undefined) throw new UserError(noNodeMessage())
  // Vite takes the file names in its URLs apart at these.
  if ((IS_WINDOWS ? /[#?]/ : /[#?\\]/).test(ROOT)) {
    throw new UserError(`The page cannot be built in a folder with #, ? or \\ in its name: ${ROOT}. Move or rename it.`)
  }
  handleSignals()
  await installIfNeeded()
  return command === 'start' ? await runNode(['infra/local-stack/src/main.ts', ...args]) : await test(args)
}

function noNodeMessage() {
  return (
    `Node ${NEEDED_NODE} or newer is needed on ${PLATFORM}; this is ${process.versions.node}. ` +
    'Install a newer one from https://nodejs.org, then run this again.'
  )
}

function isAtLeast(version, least) {
  const [ours, needed] = [version, least].map((each) => each.split('.').map(Number))
  const index = ours.findIndex((part, position) => part !== needed[position])
  return index === -1 || ours[index] > needed[index]
}

/**
 * The file of the Node that the workspace installs; undefined if it has none for this platform, or if this one is too
 * old to run the install. That of Linux x64 is installed under the name `node`.
 */
function pinnedNode() {
  if (!isAtLeast(process.versions.node, '20.0.0')) return undefined
  const name = `node-${IS_WINDOWS ? 'win' : process.platform}-${process.arch}`
  const { optionalDependencies } = readJson(join(ROOT, 'package.json'))
  const [folder] =
    Object.entries(optionalDependencies).find(([key, spec]) => key === name || spec.startsWith(`npm:${name}@`)) ?? []
  return folder && join(ROOT, 'node_modules', folder, 'bin', IS_WINDOWS ? 'node.exe' : 'node')
}

// -------------------------------------------------------------------------------------------------------------- test

async function test(args) {
  // Says what the tests lack, and installs it where it can. A test that lacks something fails with what to do.
  await runNode(['packages/dev-servers/src/prepare-tests.ts'])
  if (running.signals.size > 0) return interruptedStatus()
  const checks = await Promise.all([
    // The linter loads every type anyway: a compiler beside it would do the same work again.
    runCheck('Type-check and lint', [
      'node_modules/oxlint/bin/oxlint',
      '--type-aware',
      '--type-check',
      '--deny-warnings',
    ]),
    runCheck('Format', ['node_modules/oxfmt/bin/oxfmt', '--check']),
    // Once before the tests, so that test files that run at the same time do not all build it.
    runCheck('Build of the page', ['packages/console/build.ts']),
  ])
  print('Tests:')
  const { status, passed, failed } = await runJest(args)
  if (running.signals.size > 0) return interruptedStatus()
  const failedChecks = checks.filter((check) => check.status !== 0).map(({ name }) => name)
  if (failedChecks.length > 0) print(`Failed before the tests: ${failedChecks.join(', ')} (see above)`)
  print(`${passed} passed, ${failed} failed`)
  return failedChecks.length > 0 ? 1 : status
}

/** Runs a script. Prints its duration, and its output only if it failed. */
async function runCheck(name, args) {
  const startedMs = Date.now()
  const { status, output } = await runInBackground([NODE, ...args])
  print(`${name}: ${status === 0 ? 'done' : 'FAILED'} (${secondsSince(startedMs)})`)
  if (status !== 0) print(output.trimEnd())
  return { name, status }
}

/** Runs all tests, and counts them. A test file that cannot be loaded counts as one failed test. */
async function runJest(args) {
  // Jest names the file in its output.
  const file = join(ROOT, 'node_modules/.cache/test-results.json')
  mkdirSync(dirname(file), { recursive: true })
  rmSync(file, { force: true })
  // With Node's 16 MB, collecting garbage took 7 % of the processor time of Jest's workers, which get this option too.
  const jest = ['--max-semi-space-size=32', 'node_modules/jest/bin/jest.js', '--config', 'infra/jest.config.mjs']
  const status = await runNode([...jest, '--json', '--outputFile', file, ...args])
  const results = existsSync(file)
    ? readJson(file)
    : { numPassedTests: 0, numFailedTests: 0, numRuntimeErrorTestSuites: 0 }
  return { status, passed: results.numPassedTests, failed: results.numFailedTests + results.numRuntimeErrorTestSuites }
}

// ----------------------------------------------------------------------------------------------------------- install

/** Records what was installed, so that a later start installs again only if something changed. */
const STAMP_FILE = join(ROOT, 'node_modules/.workflow-service-install.json')
const PRISMA_INPUTS = ['packages/database/prisma/schema.prisma', 'packages/database/scripts/generate-prisma-client.mjs']
const PRISMA_CLIENT = 'packages/database/src/generated/client.ts'

async function installIfNeeded() {
  // The platform is part of the stamp, because a copied node_modules has binaries of the other machine.
  const wanted = { dependencies: hashOf(dependencyFiles()), prisma: hashOf(PRISMA_INPUTS), platform: PLATFORM }
  const installed = readStamp()
  const isInstalled = installed.dependencies === wanted.dependencies && installed.platform === wanted.platform
  if (!isInstalled || !existsSync(NODE)) {
    // Without a stamp, an interrupted install is repeated.
    rmSync(STAMP_FILE, { force: true })
    await installDependencies()
  } else if (installed.prisma === wanted.prisma && existsSync(join(ROOT, PRISMA_CLIENT))) {
    return
  }
  // Without its part of the stamp, an interrupted generation is repeated.
  writeStamp({ ...wanted, prisma: null })
  // pnpm runs this script too, but not when only the schema has changed.
  const { status } = await runCheck('Generating the database client', [PRISMA_INPUTS[1]])
  if (status !== 0) throw new UserError('The database client could not be generated; the reason is above.')
  writeStamp(wanted)
}

/** The files that decide what is installed: the lockfile and the package.json of every workspace package. */
function dependencyFiles() {
  const workspace = readFileSync(join(ROOT, 'pnpm-workspace.yaml'), 'utf8').replaceAll('\r', '')
  const patterns = /^packages:\n((?: +- .*\n)+)/m.exec(workspace)[1].match(/[^\s'"-][^\s'"]*/g)
  const folders = patterns.flatMap((pattern) => {
    const parent = pattern.replace(/\/\*$/, '')
    return parent === pattern ? [pattern] : readdirSync(join(ROOT, parent)).map((name) => `${parent}/${name}`)
  })
  const shared = ['package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml', '.pnpmfile.mjs']
  return [...shared, ...folders.map((path) => `${path}/package.json`)]
}

function hashOf(files) {
  const hash = createHash('sha256')
  for (const file of files.filter((name) => existsSync(join(ROOT, name)))) {
    hash.update(`${file}\0`).update(readFileSync(join(ROOT, file)))
  }
  return hash.digest('hex')
}

function readStamp() {
  try {
    return readJson(STAMP_FILE)
  } catch {
    return {}
  }
}

function writeStamp(stamp) {
  mkdirSync(dirname(STAMP_FILE), { recursive: true })
  writeFileSync(STAMP_FILE, `${JSON.stringify(stamp)}\n`)
}

async function installDependencies() {
  const startedMs = Date.now()
  const { packageManager } = readJson(join(ROOT, 'package.json'))
  const pnpm = findPnpm(packageManager.replace(/^pnpm@/, '').split('+')[0])
  print(`Installing with pnpm ${pnpm.version}; the first time takes a minute or two …`)
  const flags = ['install', '--frozen-lockfile', '--reporter=append-only']
  // CI: pnpm asks no questions and replaces a broken node_modules.
  const env = { ...process.env, CI: 'true', npm_config_loglevel: 'error' }
  // With NODE_ENV=production, pnpm would omit the devDependencies that start and test need.
  delete env.NODE_ENV
  const { status, output } = await runInBackground([...pnpm.command, ...flags], { env, onOutput: createProgress() })
  if (status !== 0) throw installError(output)
  if (!existsSync(NODE)) throw new UserError(noNodeMessage())
  print(`Installed in ${secondsSince(startedMs)}.`)
}

/** Returns a listener of pnpm's output that prints the number of packages every 5 seconds. */
function createProgress() {
  let printedMs = Date.now()
  return (text) => {
    const counts = /Progress: resolved \d+, reused (\d+), downloaded (\d+)/g
    const last = [...text.matchAll(counts)].at(-1)
    if (!last || Date.now() - printedMs < 5000) return
    printedMs = Date.now()
    print(`  ${Number(last[1]) + Number(last[2])} packages so far …`)
  }
}

function installError(output) {
  const advice = /ENOSPC|No space left on device|Disk quota exceeded|os error (28|122)\b/i.test(output)
    ? `No space is left on the disk of ${ROOT}. Free 2 GB, then run this again.`
    : 'The reason is above. Fix it, then run this again.'
  return new UserError(`${output.trim().split('\n').slice(-15).join('\n')}\n\nThe install failed. ${advice}`)
}

// --------------------------------------------------------------------------------------------- processes and signals

/**
 * The child processes that run now, each with whether it has the terminal, and the signals that this process has
 * received.
 */
const running = { children: new Map(), signals: new Set() }

/**
 * Runs a command and resolves to its exit status and output. After a signal, ends this process when the last command
 * has ended.
 */
async function runInBackground([command, ...args], { env = process.env, onOutput = () => {} } = {}) {
  const shell = IS_WINDOWS && command !== process.execPath && command !== NODE
  const child = spawn(command, args, { cwd: ROOT, env, shell, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
      onOutput(String(chunk))
    })
  }
  const status = await untilClosed(child, { inForeground: false })
  if (running.signals.size > 0 && running.children.size === 0) {
    print('Interrupted; nothing is left running.')
    process.exit(interruptedStatus())
  }
  return { status, output }
}

/** Runs Node with the terminal of this process and resolves to its exit status. */
async function runNode(args) {
  const child = spawn(NODE, args, { cwd: ROOT, stdio: 'inherit' })
  return await untilClosed(child, { inForeground: true })
}

function untilClosed(child, { inForeground }) {
  running.children.set(child, inForeground)
  return new Promise((resolve, reject) => {
    child.on('error', (error) => reject(new UserError(`${child.spawnfile} cannot be run: ${error.message}`)))
    child.on('close', (code, signal) => {
      running.children.delete(child)
      resolve(exitStatus(code, signal))
    })
  })
}

function handleSignals() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => interrupt(signal))
  if (!process.env.npm_lifecycle_event) return
  // npm's shell passes no signal on, and a killed npm sends none. Windows keeps the id of a parent that has ended.
  const parent = process.ppid
  const hasParent = () => process.ppid === parent && isAlive(parent)
  // A closed terminal ends npm and its shell at once: the child, which has got SIGHUP too, takes another signal for
  // impatience. That SIGHUP of this process may be handled after the first check that finds no parent.
  let checksWithoutParent = 0
  const check = () => {
    checksWithoutParent = hasParent() ? 0 : checksWithoutParent + 1
    if (checksWithoutParent > 1 && running.signals.size === 0) interrupt('SIGTERM')
  }
  setInterval(check, 200).unref()
}

function interrupt(signal) {
  // Ctrl-C arrives twice: from the terminal and from npm.
  if (running.signals.has(signal)) return
  running.signals.add(signal)
  if (running.children.size === 0) process.exit(exitStatus(null, signal))
  for (const [child, inForeground] of running.children) {
    if (!inForeground) child.kill()
    // On Windows a signal would end the child at once. It gets Ctrl-C and the closing of its window itself, and sees
    // npm's end. On a terminal, the child gets Ctrl-C from the terminal too.
    else if (!IS_WINDOWS && (signal !== 'SIGINT' || !process.stdin.isTTY)) child.kill(signal)
  }
}

/** Returns the exit status after the first signal that this process has received. */
function interruptedStatus() {
  const [signal] = running.signals
  return exitStatus(null, signal)
}

/** Returns the exit status as shells do: 128 plus the number of the signal. */
function exitStatus(code, signal) {
  return code ?? 128 + (constants.signals[signal] ?? 0)
}

// ----------------------------------------------------------------------------------------------------------- helpers

function isAlive(pid) {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}

function print(line) {
  process.stdout.write(`${line}\n`)
}

function secondsSince(startedMs) {
  return `${((Date.now() - startedMs) / 1000).toFixed(1)} s`
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}

process.exitCode = await main(process.argv.slice(2)).catch((error) => {
  process.stderr.write(`${error instanceof UserError ? error.message : error.stack}\n`)
  return 1
})
