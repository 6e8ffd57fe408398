import { describe, expect, test } from '@jest/globals'
import { findRulesNameError } from './rules.ts'

describe('findRulesNameError', () => {
  test.each([
    ['rules.yml', [], 'name'],
    ['Rules.yaml', [], 'name'],
    ['RULES.YML', [], 'name'],
    [' rules.yaml', [], 'name'],
    ['rules.yaml', ['config'], 'path'],
    ['Rules.yaml', ['config', 'old'], 'name'],
  ])('refuses %j in the folders %j at the %s, with the right name', (name, path, field) => {
    const error = findRulesNameError({ name, path })
    expect(error).toMatchObject({ field, code: 'value_error' })
    expect(error?.message).toContain('"rules.yaml" in no folder')
    expect(error?.message).toContain(JSON.stringify([...path, name].join('/')))
  })

  test.each([
    ['rules.yaml', []],
    ['rules.yaml.txt', []],
    ['our-rules.yaml', []],
    ['rules.md', ['docs']],
  ])('accepts %j in the folders %j', (name, path) => {
    expect(findRulesNameError({ name, path })).toBeUndefined()
  })
})
