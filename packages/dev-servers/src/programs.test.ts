import { expect, test } from '@jest/globals'
import { findOrInstall, installCommand } from './programs.ts'

test.each([
  ['linux', 'sudo apt-get install redis-server, or the package of your system'],
  ['darwin', 'brew install redis'],
  ['win32', 'run npm test in WSL 2, there: sudo apt-get install redis-server'],
] as const)('the command that installs what tests lack is one of %s', (platform, command) => {
  expect(installCommand('Redis', platform)).toBe(command)
})

test('nothing is said or installed where nothing is missing', async () => {
  const said: string[] = []
  expect(
    await findOrInstall(
      'Redis',
      async () => 'here',
      (line) => said.push(line),
    ),
  ).toBe('here')
  expect(said).toEqual([])
})
