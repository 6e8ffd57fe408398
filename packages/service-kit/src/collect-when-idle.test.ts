import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from '@jest/globals'

/** Leaves 40 MiB of garbage, and ends when the heap is smaller by 30. */
const SCRIPT = `
  import { collectWhenIdle } from ${JSON.stringify(import.meta.resolve('./collect-when-idle.ts'))}
  import { getHeapStatistics } from 'node:v8'
  collectWhenIdle(100)
  let kept = Array.from({ length: 10 }, () => Array.from({ length: 131_072 }, (_, index) => ({ index })))
  const heapMiB = () => getHeapStatistics().total_heap_size / 2 ** 20
  const before = heapMiB()
  kept = undefined
  setInterval(() => { if (heapMiB() < before - 30) process.exit() }, 20)`

test('an idle process gives back the memory of its garbage, though it allocates nothing', async () => {
  const args = ['--input-type=module', '--eval', SCRIPT]
  await expect(promisify(execFile)(process.execPath, args, { timeout: 20_000 })).resolves.toBeDefined()
})
