import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { readCliConfig } from './config.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'workflow-service-config-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const token = 't'.repeat(32)

describe('readCliConfig', () => {
  test('uses the first of several tokens', () => {
    const env = { DISPATCHER_URL: 'http://d', INTERNAL_API_TOKEN: `${token},${'o'.repeat(32)}`, LOCAL_DIR: folder }
    expect(readCliConfig(env).dispatcher()).toEqual({ url: 'http://d', token })
  })

  test('reads the settings of the local stack if there is no DATABASE_URL', () => {
    writeFileSync(
      join(folder, 'env'),
      `# comment\nDATABASE_URL=postgres://local/x\nDISPATCHER_URL=http://local\nINTERNAL_API_TOKEN=${token}\n`,
    )
    const config = readCliConfig({ LOCAL_DIR: folder, DATABASE_URL: ' ' })
    expect(config.isLocal).toBe(true)
    expect(config.databaseUrl()).toBe('postgres://local/x')
    expect(config.dispatcher()).toEqual({ url: 'http://local', token })
    expect(() => config.queue()).toThrow('The local stack of npm start does not use RabbitMQ')
  })

  test('uses given variables in place of those of the local stack', () => {
    writeFileSync(join(folder, 'env'), `DATABASE_URL=postgres://local/x\nAPP_URL=http://127.0.0.1:8083\n`)
    const given = { APP_URL: 'https://app.example', AMQP_URL: 'amqp://broker', LOCAL_DIR: folder }
    const config = readCliConfig(given)
    expect([config.databaseUrl(), config.appUrl()]).toEqual(['postgres://local/x', 'https://app.example'])
    expect(config.queue().url).toBe('amqp://broker')
    expect(readCliConfig({ APP_URL: ' ', LOCAL_DIR: folder }).appUrl()).toBe('http://127.0.0.1:8083')
  })

  test('refuses the dispatcher, token or key of another installation without its database', () => {
    writeFileSync(join(folder, 'env'), `DATABASE_URL=postgres://local/x\nDISPATCHER_URL=http://local\n`)
    const other = readCliConfig({ DISPATCHER_URL: 'http://production', LOCAL_DIR: folder })
    expect(() => other.databaseUrl()).toThrow(/DISPATCHER_URL is not that of .*env\. Set DATABASE_URL too, or unset/)
    const same = readCliConfig({ DISPATCHER_URL: 'http://local', LOCAL_DIR: folder })
    expect(same.databaseUrl()).toBe('postgres://local/x')
  })

  test('never mixes settings of the local stack with those of the environment', () => {
    writeFileSync(
      join(folder, 'env'),
      `DATABASE_URL=postgres://local/x\nDISPATCHER_URL=http://local\nINTERNAL_API_TOKEN=${token}\n`,
    )
    const config = readCliConfig({ LOCAL_DIR: folder, DATABASE_URL: 'postgres://production/x' })
    expect(config.isLocal).toBe(false)
    expect(config.databaseUrl()).toBe('postgres://production/x')
    expect(() => config.dispatcher()).toThrow('DISPATCHER_URL is missing')
  })
})
