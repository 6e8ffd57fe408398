import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { operationsReference } from './operations-reference.ts'

test('OPERATIONS.md is what `pnpm generate:operations` writes', () => {
  expect(readFileSync(join(import.meta.dirname, '../OPERATIONS.md'), 'utf8')).toBe(operationsReference())
})
