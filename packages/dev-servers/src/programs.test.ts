import { describe, expect, test } from '@jest/globals'
import { planInstall } from './programs.ts'

const debian = { platform: 'linux', hasAptGet: true } as const
const other = { hasAptGet: false, isRoot: false } as const

describe('before the tests', () => {
  test('nothing is said or installed where nothing is missing', () => {
    expect(planInstall([], { ...debian, isRoot: true })).toBeUndefined()
  })

  test('root on Debian reads what is installed and why, before it is', () => {
    const { message, packages } = planInstall(['RabbitMQ', 'Chromium'], { ...debian, isRoot: true })!
    expect(message).toBe(
      'Not installed here, and needed by tests: RabbitMQ (for the session queue), Chromium (for the pages).\n' +
        'Installing with apt-get, without starting a server: rabbitmq-server chromium-headless-shell',
    )
    expect(packages).toEqual(['rabbitmq-server', 'chromium-headless-shell'])
  })

  test.each([
    ['another user on Debian', { ...debian, isRoot: false }, /: sudo apt-get install .* rabbitmq-server redis-server$/],
    ['macOS', { ...other, platform: 'darwin' } as const, /: brew install rabbitmq redis$/],
    ['Windows', { ...other, platform: 'win32' } as const, /: run npm test in WSL 2, there: sudo apt-get install /],
    ['another Linux', { ...other, platform: 'linux' } as const, /: the packages of your system for RabbitMQ, Redis$/],
  ])('%s reads the command that installs it, and nothing is installed', (_who, system, command) => {
    const { message, packages } = planInstall(['RabbitMQ', 'Redis'], system)!
    expect(message).toMatch(command)
    expect(packages).toEqual([])
  })
})
