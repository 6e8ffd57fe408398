import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { useTestFolder } from '@workflow-service/testkit/use-test-folder'
import { describe, expect, test } from '@jest/globals'
import { readCliConfig } from './config.ts'

const folder = useTestFolder()
const token = 't'.repeat(32)
/** The file of the local stack. */
const save = (...lines: string[]) => writeFileSync(join(folder, 'env'), lines.join('\n'))
const read = (env: Record<string, string>) => readCliConfig({ LOCAL_DIR: folder, ...env })

describe('readCliConfig', () => {
  test('uses the first of several tokens', () => {
    const tokens = `${token},${'o'.repeat(32)}`
    const config = readCliConfig({ DISPATCHER_URL: 'http://d', INTERNAL_API_TOKEN: tokens, LOCAL_DIR: '/nonexistent' })
    expect(config.dispatcher()).toEqual({ url: 'http://d', token })
  })

  test('reads the settings of the local stack if there is no DATABASE_URL, and never mixes them with those of another', () => {
    save('# comment', 'DATABASE_URL=postgres://local/x', 'DISPATCHER_URL=http://local', `INTERNAL_API_TOKEN=${token}`)
    const local = read({ DATABASE_URL: ' ' })
    expect(local.isLocal).toBe(true)
    expect(local.databaseUrl()).toBe('postgres://local/x')
    expect(local.dispatcher()).toEqual({ url: 'http://local', token })
    expect(() => local.queue()).toThrow('The local stack of npm start does not use RabbitMQ')
    const other = read({ DATABASE_URL: 'postgres://production/x' })
    expect(other.isLocal).toBe(false)
    expect(other.databaseUrl()).toBe('postgres://production/x')
    expect(() => other.dispatcher()).toThrow('DISPATCHER_URL is missing')
  })

  test('uses given variables in place of those of the local stack', () => {
    save('DATABASE_URL=postgres://local/x', 'APP_URL=http://127.0.0.1:8083')
    const config = read({ APP_URL: 'https://app.example', AMQP_URL: 'amqp://broker' })
    expect([config.databaseUrl(), config.appUrl()]).toEqual(['postgres://local/x', 'https://app.example'])
    expect(config.queue().url).toBe('amqp://broker')
    expect(read({ APP_URL: ' ' }).appUrl()).toBe('http://127.0.0.1:8083')
  })

  test('refuses the dispatcher, token or key of another installation without its database', () => {
    save('DATABASE_URL=postgres://local/x', 'DISPATCHER_URL=http://local')
    const other = read({ DISPATCHER_URL: 'http://production' })
    expect(() => other.databaseUrl()).toThrow(/DISPATCHER_URL is not that of .*env\. Set DATABASE_URL too, or unset/)
    expect(read({ DISPATCHER_URL: 'http://local' }).databaseUrl()).toBe('postgres://local/x')
  })
})
