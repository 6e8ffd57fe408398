import { execFile } from 'node:child_process'
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from '@jest/globals'
import { startProcess } from '@workflow-service/testkit'
import { useTestFolder } from '@workflow-service/testkit/use-test-folder'
import { COMMANDS } from '../src/commands.ts'
import { failure, wf } from './support/wf.ts'

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))

const folder = useTestFolder()
const NO_DATABASE = 'postgres://127.0.0.1:1/x'

const throwOh = () => {
  throw new Error('oh')
}

describe('wf', () => {
  test.each<[string, string[]]>([
    ['no command', []],
    ['a command that needs another', ['keys']],
    ['an unknown command', ['aply']],
    ['an unknown option', ['runs', 'list', '--all']],
    ['a missing argument', ['apply']],
    ['an option without its value', ['runs', 'list', '--limit']],
    ['too many arguments', ['migrate', 'now']],
    ['a value that is no choice', ['runs', 'list', '--status', 'lost']],
    ['a value that cannot be read', ['logs', 'Order intake', '--since', 'later']],
  ])('exits with 2 on %s and shows the usage', async (_what, args) => {
    const { exitStatus, stdout, stderr } = await wf({}, args)
    expect({ exitStatus, stdout }).toEqual({ exitStatus: 2, stdout: '' })
    expect(stderr).toMatch(/Usage: wf|Error: [^]*run it with --help for usage/)
  })

  test.each<[string[], RegExp]>([
    [['runs', 'list', '--limit', 'abc', '--json'], /^option '--limit .*It must be a whole number/],
    [['runs', 'show', '--json'], /^missing required argument/],
    [['keys', '--json'], /^a command is missing before --json/],
    [['--json', 'runs', 'list'], /^a command is missing before --json/],
    [['runs', '--limit=3', 'list', '--json'], /^a command is missing before --limit/],
    [['runs', 'list', '--workflow', '--json'], /^the value of --workflow is missing: --json is an option/],
    [['runs', 'list', '--json', '--workflow', '--help'], /^the value of --workflow is missing: --help is an option/],
    [['runs', 'list', '--json', '--workflow', '-h'], /^the value of --workflow is missing: -h is an option/],
    [['runs', 'list', '--json', '--session', '-f'], /^the value of --session is missing: -f is an option/],
  ])('prints wrong usage as JSON with --json: %j', async (args, message) => {
    const { exitStatus, stdout, stderr } = await wf({}, args)
    expect({ exitStatus, stdout }).toEqual({ exitStatus: 2, stdout: '' })
    expect(JSON.parse(stderr)).toEqual({ error: { message: expect.stringMatching(message) } })
  })

  test('prints unexpected errors as JSON with --json', async () => {
    const { exitStatus, stderr } = await wf({}, ['-V', '--json'], { onWrite: throwOh })
    const message = expect.stringMatching(/^Unexpected error, please report it: Error: oh\n/)
    expect([exitStatus, JSON.parse(stderr)]).toEqual([1, { error: { message } }])
  })

  test.each<[string[]]>([[['--help']], [['apply', '--help']], [['help', 'keys', 'create']]])(
    'exits with 0 on %j and shows help',
    async (args) => {
      const { exitStatus, stdout } = await wf({}, args)
      expect(exitStatus).toBe(0)
      expect(stdout).toMatch(/^Usage: wf/)
    },
  )

  test('has every command in its README', async () => {
    const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8')
    const names = COMMANDS.flatMap((each) =>
      'parts' in each ? [each.name] : each.commands.map(({ name }) => `${each.name} ${name}`),
    )
    const isAbsent = (name: string) => !new RegExp(`\\b${name.replace(' ', ' (.*, `)?')}\\b`).test(readme)
    expect(names.filter(isAbsent)).toEqual([])
  })

  test('exits with 2 if --since is after --until', async () => {
    const message = /^Error: --since \(2026-02-01T.*\) must be before --until \(2026-01-01T/
    const ended = await wf({}, ['runs', 'list', '--since', '2026-02-01', '--until', '2026-01-01'])
    expect(ended).toMatchObject(failure(message, 2))
  })

  test('exits with 1 on a missing setting and names it with an example', async () => {
    const message = /DATABASE_URL is missing\. .*Example: DATABASE_URL=postgres:/
    expect(await wf({}, ['keys', 'list'])).toMatchObject(failure(message))
  })

  test('names the server when PostgreSQL does not answer, without the password', async () => {
    const { exitStatus, stderr } = await wf({ DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/x' }, ['runs', 'list'])
    expect(exitStatus).toBe(1)
    expect(stderr).toMatch(/^Error: PostgreSQL at u@127\.0\.0\.1:1\/x does not answer .*Check that it is running/)
    expect(stderr).not.toContain('hunter2')
    const withoutUser = await wf({ DATABASE_URL: NO_DATABASE }, ['runs', 'list'])
    expect(withoutUser.stderr).toContain('PostgreSQL at 127.0.0.1:1/x does not answer')
  })

  test('as a process: names files from where npm was called, prints no colours into a pipe, and reads UTF-8 only', async () => {
    await writeFile(join(folder, 'empty.yaml'), '')
    const env = { INIT_CWD: folder, npm_lifecycle_event: 'wf', LOCAL_DIR: '/nonexistent', DATABASE_URL: NO_DATABASE }
    const called = await startProcess({ args: [main, 'apply', 'empty.yaml'], env })
    expect(await called.exited).toMatchObject({ code: 1 })
    const message = 'empty.yaml: is empty; a manifest begins with "organization:"'
    expect(called.stderr).toBe(`Error: Nothing was applied. One error:\n  ${message}\n`)
    const latin = String.raw`printf 'organization: { name: Caf\351 }' | "$0" "$1" apply -`
    const refused = await startProcess({ command: 'bash', args: ['-c', latin, process.execPath, main], env })
    expect(await refused.exited).toMatchObject({ code: 1 })
    expect(refused.stderr).toBe('Error: Standard input cannot be read: it is not UTF-8 text.\n')
  })

  test('survives a closed pipe', async () => {
    const script = '"$0" "$1" --help | head -n 1; echo "${PIPESTATUS[0]}"'
    const piped = await startProcess({ command: 'bash', args: ['-c', script, process.execPath, main] })
    expect(await piped.exited).toMatchObject({ code: 0 })
    expect(piped.stdout).toBe('Usage: wf COMMAND [options]\n0\n')
    expect(piped.stderr).toBe('')
  })

  test.each([[['--help']], [['complete', '--', 'runs', 'list', '--']]])(
    'loads neither database nor schemas for %j: that would take longer than all else',
    async (args) => {
      const hook = `import { registerHooks } from 'node:module'
        registerHooks({ load: (url, context, next) => (process._rawDebug(url), next(url, context)) })`
      const nodeArgs = ['--import', `data:text/javascript,${encodeURIComponent(hook)}`]
      const program = await startProcess({ args: [...nodeArgs, main, ...args], env: { LOCAL_DIR: '/nonexistent' } })
      expect(await program.exited).toMatchObject({ code: 0 })
      const loaded = program.stderr.split('\n').filter((url) => url.startsWith('file:'))
      expect(loaded.length).toBeGreaterThan(10)
      expect(loaded.filter((url) => /packages\/database|typebox|ajv|node_modules\/pg/.test(url))).toEqual([])
    },
  )

  test('says that its output cannot be written', async () => {
    const full = await startProcess({
      command: 'bash',
      args: ['-c', '"$0" "$1" -V > /dev/full', process.execPath, main],
    })
    expect(await full.exited).toMatchObject({ code: 1 })
    expect(full.stderr).toMatch(/^Error: the output cannot be written: ENOSPC[^\n]*\n$/)
  })

  test('is packed alone, without the database, for those who have an API key', async () => {
    const packed = await startProcess({ args: [fileURLToPath(new URL('../pack.ts', import.meta.url)), folder] })
    expect(await packed.exited).toMatchObject({ code: 0 })
    const tarball = (await readdir(folder)).find((name) => name.endsWith('.tgz'))!
    await promisify(execFile)('tar', ['-xf', join(folder, tarball), '-C', folder])
    // What npm installs beside it.
    await symlink(fileURLToPath(new URL('../node_modules', import.meta.url)), join(folder, 'node_modules'))
    const lib = join(folder, 'package/lib')
    const texts = await Promise.all((await readdir(lib)).map((name) => readFile(join(lib, name), 'utf8')))
    const imported = texts.flatMap((text) =>
      [...text.matchAll(/^import .*?from "([^".]+)";/gm)].map(([, name]) => name),
    )
    const installed = [...new Set(imported)].filter((name) => !name?.startsWith('node:'))
    expect(new Set(installed)).toEqual(new Set(['commander', 'string-width']))
    // Of another program: it is not looked at.
    const env = { DATABASE_URL: NO_DATABASE, HOME: folder }
    const run = async (...args: string[]) => {
      const started = await startProcess({ args: [join(lib, 'main.js'), ...args], env })
      return [(await started.exited).code, started.stdout + started.stderr]
    }
    expect(await run('-V')).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+\n$/)])
    expect(await run('complete', 'run')).toEqual([0, expect.stringMatching(/^runs\t[^\n]*\n$/)])
    expect(await run('migrate')).toEqual([1, expect.stringContaining('This is a command of operators')])
    expect(await run('workflows', 'list')).toEqual([1, expect.stringContaining('wf login URL')])
  })
})
