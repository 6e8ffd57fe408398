import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { basename } from 'node:path'

/**
 * Returns the version of pnpm to use and its command line: an installed one of the same major version, else this
 * version, which npm downloads. Plain JavaScript, because nothing is installed yet when it runs.
 */
export function findPnpm(version) {
  // Runs outside of the workspace, where pnpm and corepack would download the version that package.json names.
  const found = spawnSync('pnpm', ['--version'], {
    cwd: tmpdir(),
    env: { ...process.env, COREPACK_ENABLE_DOWNLOAD_PROMPT: '0', COREPACK_ENABLE_NETWORK: '0' },
    encoding: 'utf8',
    shell: process.platform === 'win32',
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
