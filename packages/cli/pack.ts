// node packages/cli/pack.ts FOLDER: packs `wf` for developers who have an API key alone, as one npm package without
// the database's libraries. It has no commands of operators: those need the database, and come with the repository.
import { execFileSync } from 'node:child_process'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type RolldownPlugin } from 'rolldown'

const HERE = import.meta.dirname
const DIST = join(HERE, 'dist')

const PACKAGE = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8')) as {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly dependencies: Readonly<Record<string, string>>
}
/** Installed beside it; all else is in the bundle. */
const DEPENDENCIES = ['commander', 'string-width']

/** What the modules of operators are in the package. Reached only where a command has no other way. */
const WITHOUT_OPERATOR = `import { CliError } from ${JSON.stringify(join(HERE, 'src/cli-error.ts'))}
throw new CliError('This is a command of operators: use the wf of the installation. Here are those with an API key: wf --help.')`

const plugin: RolldownPlugin = {
  name: 'without-operator',
  resolveId: (source) => {
    if (/\/operator\//.test(source)) return '\0operator'
    // Its folder is one of the repository.
    return source === '@workflow-service/service-kit/compile-cache' ? '\0nothing' : null
  },
  load: (id) => (id === '\0operator' ? WITHOUT_OPERATOR : id === '\0nothing' ? '' : null),
}

rmSync(DIST, { recursive: true, force: true })
await build({
  input: join(HERE, 'src/main.ts'),
  platform: 'node',
  plugins: [plugin],
  external: DEPENDENCIES,
  output: { dir: join(DIST, 'lib'), format: 'esm', entryFileNames: 'main.js', chunkFileNames: '[name]-[hash].js' },
})
const { name, version, license, dependencies } = PACKAGE
const manifest = {
  name,
  version,
  description: 'wf: start and follow workflows of the Workflow Automation Service with an API key',
  keywords: ['cli', 'webhook', 'workflow'],
  license,
  type: 'module',
  bin: { wf: 'lib/main.js' },
  files: ['lib'],
  engines: { node: '>=22' },
  dependencies: Object.fromEntries(DEPENDENCIES.map((each) => [each, dependencies[each]])),
  publishConfig: { access: 'public' },
}
writeFileSync(join(DIST, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
copyFileSync(join(HERE, 'PACKAGE.md'), join(DIST, 'README.md'))
copyFileSync(join(HERE, '../client/LICENSE'), join(DIST, 'LICENSE'))
const packArgs = ['pack', '--pack-destination', process.argv[2] ?? process.cwd(), '--loglevel', 'error']
execFileSync('npm', packArgs, { cwd: DIST, stdio: 'ignore' })
