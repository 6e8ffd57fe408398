import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { expect, test } from '@jest/globals'
import { makeRunFolder, removeDeadRunFolders } from './run-folder.ts'

test('the folder of a killed process is removed by the next run, that of a live one is not', async () => {
  const own = await makeRunFolder()
  const module = new URL('run-folder.ts', import.meta.url).href
  const script = `
    import { makeRunFolder } from ${JSON.stringify(module)}
    console.log(await makeRunFolder())
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [left] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(existsSync(left)).toBe(true)

  await removeDeadRunFolders()
  expect([existsSync(left), existsSync(own)]).toEqual([false, true])
  await rm(own, { recursive: true })
})
