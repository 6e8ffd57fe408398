// Runs `npm start` and `npm test` on any Node from 20 on: installs the workspace if needed, then continues with the Node
// version that the workspace pins. Plain JavaScript without dependencies, because nothing else exists before the install.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))
const IS_WINDOWS = process.platform === 'win32'
const PLATFORM = `${process.platform}-${process.arch}`
const PINNED_NODE = join(ROOT, 'node_modules/node/bin', IS_WINDOWS ? 'node.exe' : 'node')

/** An error that the user can fix. Only its message is printed. */
class UserError extends Error {}

async function main([command, ...args]) {
  if (command !== 'start' && command !== 'test') {
    throw new UserError('Usage: node infra/bootstrap.mjs start|test [arguments]')
  }
  checkNodeVersion()
  handleSignals()
  await installIfNeeded()
  return command === 'start' ? await start(args) : await test(args)
}

function checkNodeVersion() {
  if (Number(process.versions.node.split('.')[0]) >= 20) return
  throw new UserError(`Node 20 or newer is needed; this is ${process.version}. Download a newer one from nodejs.org.`)
}

// ---------------------------------------------------------------------------------------------------- start and test

async function start(args) {
  return await runPinnedNode(['infra/local-stack/src/main.ts', ...args])
}

async function test(args) {
  const checks = [
    await runCheck('Type-check', ['node_modules/typescript/bin/tsc', '--project', 'tsconfig.base.json']),
    await runCheck('Type-check of the page', [
      'node_modules/typescript/bin/tsc',
      '--project',
      'packages/console/tsconfig.json',
    ]),
    await runCheck('Lint', ['node_modules/oxlint/bin/oxlint', '--type-aware', '--deny-warnings']),
    await runCheck('Format', ['node_modules/oxfmt/bin/oxfmt', '--check']),
  ]
  // Once before the tests, so that test files that run at the same time do not all build it.
  checks.push(await runCheck('Build of the page', ['packages/console/build.ts']))
  print('Tests:')
  const { status, passed, failed } = await runJest(args)
  const [signal] = running.signals
  if (signal) return exitStatus(null, signal)
  const failedChecks = checks.filter((check) => check.status !== 0).map(({ name }) => name)
  if (failedChecks.length > 0) print(`Failed before the tests: ${failedChecks.join(', ')} (see above)`)
  print(`${passed} passed, ${failed} failed`)
  return failedChecks.length > 0 ? 1 : status
}

/** Runs a script with the pinned Node. Prints its duration, and its output only if it failed. */
async function runCheck(name, args) {
  const startedMs = Date.now()
  const { status, output } = await runInBackground([PINNED_NODE, ...args])
  print(`${name}: ${status === 0 ? 'done' : 'FAILED'} (${secondsSince(startedMs)})`)
  if (status !== 0) print(output.trimEnd())
  return { name, status }
}

/** Runs all tests. A reporter in the testkit writes the counts to TEST_COUNTS_FILE. */
async function runJest(args) {
  const folder = mkdtempSync(join(tmpdir(), 'workflow-service-counts-'))
  const countsFile = join(folder, 'counts.json')
  const jest = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js']
  const status = await runPinnedNode([...jest, '--config', 'infra/jest.config.mjs', ...args], {
    TEST_COUNTS_FILE: countsFile,
  })
  const counts = existsSync(countsFile) ? readJson(countsFile) : { passed: 0, failed: 0 }
  rmSync(folder, { recursive: true, force: true })
  return { status, ...counts }
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
  if (!isInstalled || !existsSync(PINNED_NODE)) {
    // Without a stamp, an interrupted install is repeated.
    rmSync(STAMP_FILE, { force: true })
    await installDependencies()
  } else if (installed.prisma === wanted.prisma && existsSync(join(ROOT, PRISMA_CLIENT))) {
    return
  }
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
  return ['package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml', ...folders.map((path) => `${path}/package.json`)]
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
  const { devDependencies, packageManager } = readJson(join(ROOT, 'package.json'))
  const pnpm = findPnpm(packageManager)
  print(`Installing with pnpm ${pnpm.version}; the first time takes a minute or two …`)
  const flags = ['install', '--frozen-lockfile', '--reporter=append-only']
  // CI: pnpm asks no questions and replaces a broken node_modules.
  const env = { ...process.env, CI: 'true', npm_config_loglevel: 'error' }
  // With NODE_ENV=production, pnpm would omit the devDependencies that start and test need.
  delete env.NODE_ENV
  const { status, output } = await runInBackground([...pnpm.command, ...flags], { env, onOutput: createProgress() })
  if (status !== 0) throw installError(output)
  if (!existsSync(PINNED_NODE)) {
    throw new UserError(`Node ${devDependencies.node} is not available for ${PLATFORM}. Use another machine.`)
  }
  print(`Installed in ${secondsSince(startedMs)}.`)
}

/** Finds an installed pnpm of the pinned major version; otherwise npm downloads the pinned version. */
function findPnpm(packageManager) {
  const version = packageManager.replace(/^pnpm@/, '').split('+')[0]
  // Runs outside of the workspace, where pnpm and corepack would download the version that package.json names.
  const found = spawnSync('pnpm', ['--version'], {
    cwd: tmpdir(),
    env: { ...process.env, COREPACK_ENABLE_DOWNLOAD_PROMPT: '0', COREPACK_ENABLE_NETWORK: '0' },
    encoding: 'utf8',
    shell: IS_WINDOWS,
  })
  const installed = found.status === 0 ? found.stdout.trim() : ''
  if (installed.split('.')[0] === version.split('.')[0]) return { version: installed, command: ['pnpm'] }
  const cli = process.env.npm_execpath
  const npm = cli && basename(cli) === 'npm-cli.js' ? [process.execPath, cli] : ['npm']
  return {
    version,
    command: [...npm, 'exec', '--yes', '--loglevel=error', `--package=pnpm@${version}`, '--', 'pnpm'],
  }
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

const INSTALL_ADVICE = [
  [
    /ENOSPC|No space left on device|Disk quota exceeded|os error (28|122)\b/i,
    `No space is left on the disk of ${ROOT}. Free 2 GB, then run this again.`,
  ],
  [
    /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|META_FETCH_FAIL|error sending request|dns error/i,
    'The npm registry cannot be reached. Check the network and proxy settings, then run this again.',
  ],
  [
    /EACCES|EROFS|EPERM|Permission denied|Read-only file system/i,
    `Files in ${ROOT} cannot be written. Check the owner of that folder.`,
  ],
  [
    /OUTDATED_LOCKFILE|FROZEN_LOCKFILE/,
    'pnpm-lock.yaml does not match the package.json files. Run "pnpm install" and commit the lockfile.',
  ],
  [/UNSUPPORTED_PLATFORM|no matching .* platform/i, `A package has no build for ${PLATFORM}. Use another machine.`],
]

function installError(output) {
  const advice = INSTALL_ADVICE.find(([pattern]) => pattern.test(output))?.[1]
  const lastLines = output.trim().split('\n').slice(-15).join('\n')
  return new UserError(
    `${lastLines}\n\nThe install failed. ${advice ?? 'The reason is above. Fix it, then run this again.'}`,
  )
}

// --------------------------------------------------------------------------------------------- processes and signals

/** The child process that runs now, and the signals that this process has received. */
const running = { child: undefined, inForeground: false, signals: new Set() }

/** Runs a command and resolves to its exit status and output. Ends this process if a signal interrupted the command. */
async function runInBackground([command, ...args], { env = process.env, onOutput = () => {} } = {}) {
  const shell = IS_WINDOWS && command !== process.execPath && command !== PINNED_NODE
  const child = spawn(command, args, { cwd: ROOT, env, shell, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
      onOutput(String(chunk))
    })
  }
  const status = await untilClosed(child, { inForeground: false })
  const [signal] = running.signals
  if (signal) {
    print('Interrupted; nothing is left running.')
    process.exit(exitStatus(null, signal))
  }
  return { status, output }
}

/** Runs the pinned Node with the terminal of this process and resolves to its exit status. */
async function runPinnedNode(args, extraEnv = {}) {
  const child = spawn(PINNED_NODE, args, { cwd: ROOT, env: { ...process.env, ...extraEnv }, stdio: 'inherit' })
  return await untilClosed(child, { inForeground: true })
}

function untilClosed(child, { inForeground }) {
  Object.assign(running, { child, inForeground })
  return new Promise((resolve, reject) => {
    child.on('error', (error) => reject(new UserError(`${child.spawnfile} cannot be run: ${error.message}`)))
    child.on('close', (code, signal) => {
      running.child = undefined
      resolve(exitStatus(code, signal))
    })
  })
}

function handleSignals() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => interrupt(signal))
  if (!process.env.npm_lifecycle_event) return
  // npm passes signals on, but a killed npm sends none.
  const parent = process.ppid
  setInterval(() => process.ppid === parent || interrupt('SIGTERM'), 1000).unref()
}

function interrupt(signal) {
  // Ctrl-C arrives twice: from the terminal and from npm.
  if (running.signals.has(signal)) return
  running.signals.add(signal)
  if (!running.child) process.exit(exitStatus(null, signal))
  if (!running.inForeground) running.child.kill()
  // On a terminal, the child gets Ctrl-C from the terminal too.
  else if (signal !== 'SIGINT' || !process.stdin.isTTY) running.child.kill(signal)
}

/** Returns the exit status as shells do: 128 plus the number of the signal. */
function exitStatus(code, signal) {
  return code ?? 128 + (constants.signals[signal] ?? 0)
}

// ----------------------------------------------------------------------------------------------------------- helpers

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
