import { describe, expect, test } from '@jest/globals'
import { toStartError } from './embedded-postgres-error.ts'
import { findChromium, windowsFiles } from './find-chromium.ts'
import { programFiles } from './find-program.ts'
import { programInTaskList } from './postgres-data-folder.ts'
import { findOrInstall, installCommand } from './programs.ts'

test.each([
  ['linux', 'sudo apt-get install redis-server, or the package of your system'],
  ['darwin', 'brew install redis'],
  ['win32', 'run npm test in WSL 2, there: sudo apt-get install redis-server'],
] as const)('the command that installs what tests lack is one of %s', (platform, command) => {
  expect(installCommand('Redis', platform)).toBe(command)
})

const locate = async () => 'here'

test('nothing is said or installed where nothing is missing', async () => {
  const said: string[] = []
  expect(await findOrInstall('Redis', locate, (line) => said.push(line))).toBe('here')
  expect(said).toEqual([])
})

test('a Chromium is the one in CHROMIUM_PATH, if that can be executed', async () => {
  expect(await findChromium(undefined, process.execPath)).toBe(process.execPath)
  await expect(findChromium(undefined, '/nowhere')).rejects.toThrow(
    'The browser in CHROMIUM_PATH cannot be executed: /nowhere',
  )
})

// What can be proven of Windows on another system.
describe('on Windows', () => {
  test('a program is looked for in the folders of Path, with the endings that Windows adds', () => {
    const env = { Path: String.raw`C:\Windows;;C:\Program Files\Redis`, PATHEXT: '.COM;.EXE' }
    expect(programFiles('redis-server', { platform: 'win32', env })).toEqual([
      String.raw`C:\Windows\redis-server.com`,
      String.raw`C:\Windows\redis-server.exe`,
      String.raw`C:\Program Files\Redis\redis-server.com`,
      String.raw`C:\Program Files\Redis\redis-server.exe`,
    ])
  })

  test('Chrome is looked for where its installer puts it', () => {
    const env = { ProgramFiles: String.raw`C:\Program Files`, LOCALAPPDATA: String.raw`C:\Users\Ada\AppData\Local` }
    expect(windowsFiles({ env })).toEqual(
      expect.arrayContaining([
        String.raw`C:\Program Files\Google\Chrome\Application\chrome.exe`,
        String.raw`C:\Users\Ada\AppData\Local\Google\Chrome\Application\chrome.exe`,
      ]),
    )
  })

  test('the program of a lock file is read from the list of tasks, and unknown if there is none', () => {
    const list = '"postgres.exe","1234","Console","1","20,480 K"\r\n'
    expect(programInTaskList(list, 1234)).toBe('postgres.exe')
    expect(programInTaskList(list, 123)).toBe('')
    expect(programInTaskList('INFO: No tasks are running which match the specified criteria.\r\n', 1234)).toBe('')
  })

  test('PostgreSQL in an elevated terminal says what to do', () => {
    const output = 'Execution of PostgreSQL by a user with administrative permissions is not\npermitted.'
    expect(toStartError(output, 'C:\\data').message).toContain('use an ordinary terminal')
  })
})

test('a lack of shared memory is another error than a lack of disk space', () => {
  const output = 'FATAL:  could not create shared memory segment: No space left on device'
  expect(toStartError(output, '/data').message).toContain('allows no further shared memory')
  const partly =
    'ERROR:  could not extend file "base/4/1249": wrote only 4096 of 8192 bytes\nHINT:  Check free disk space.'
  expect(toStartError(partly, '/srv/data').message).toContain('No space left on the disk of /srv')
})
