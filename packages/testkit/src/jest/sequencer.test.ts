import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { SLOW_FILES } from './sequencer.ts'

test('the slow files that run first exist', () => {
  expect(SLOW_FILES.filter((file) => !existsSync(join(import.meta.dirname, '../../../..', file)))).toEqual([])
})
