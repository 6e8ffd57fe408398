// Builds the package in the current folder for publishing: `dist/esm` and `dist/cjs`, each with its types. Plain
// JavaScript, because `npm pack` also runs it on a Node without type stripping. Sources in JavaScript are published as
// they are, so they only get a `dist/cjs`.
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const tsc = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url))
if (!existsSync(tsc)) {
  process.stderr.write('Install the dependencies of the repository first: run npm start or npm test in its root.\n')
  process.exit(1)
}
const sources = readdirSync('src').filter((name) => /(?<!\.test|\.d)\.[jt]s$/.test(name))
const isTypeScript = sources.some((name) => name.endsWith('.ts'))

rmSync('dist', { recursive: true, force: true })
if (isTypeScript) compile('dist/esm', ['--module', 'nodenext', '--declaration'])
// `nodenext` would emit ES modules: the package's own type is `module`.
const ofCommonJs = '--module commonjs --moduleResolution bundler'.split(' ')
compile('dist/cjs', [...ofCommonJs, isTypeScript ? '--declaration' : '--allowJs'])
if (!isTypeScript) {
  for (const name of readdirSync('src').filter((each) => each.endsWith('.d.ts'))) {
    copyFileSync(join('src', name), join('dist/cjs', name))
  }
}
writeFileSync('dist/cjs/package.json', '{ "type": "commonjs" }\n')

/** ES2022 is what Node 18 and the browsers of 2022 run; a newer function of the language fails the build. */
function compile(outDir, options) {
  const common = '--ignoreConfig --target es2022 --lib es2022,dom --types node --strict --skipLibCheck'.split(' ')
  const args = [...sources.map((name) => join('src', name)), '--outDir', outDir, '--rewriteRelativeImportExtensions']
  execFileSync(process.execPath, [tsc, ...args, ...common, ...options], { stdio: 'inherit' })
}
