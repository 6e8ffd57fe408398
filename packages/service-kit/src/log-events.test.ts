import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { LOG_EVENTS } from './log-events.ts'

const names = Object.keys(LOG_EVENTS)

test.each(names)('%s is a noun and a verb, and is logged', (name) => {
  expect(name).toMatch(/^[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*$/)
  expect(sources.some((source) => source.includes(`'${name}'`))).toBe(true)
})

const root = join(import.meta.dirname, '../../..')
const sources = globSync(['{services,packages,infra}/*/src/**/*.ts'], { cwd: root })
  .filter((path) => !/node_modules|\.test\.ts$|generated|log-events\.ts$/.test(path))
  .map((path) => readFileSync(join(root, path), 'utf8'))
