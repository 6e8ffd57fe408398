import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from '@jest/globals'
import { isAlive } from './is-alive.ts'
import { spawnGuarded } from './spawn-guarded.ts'
import { waitUntil } from './wait-until.ts'

function node(script: string, deathSignal: 'SIGINT' | 'SIGTERM' | 'SIGKILL' = 'SIGKILL') {
  return spawnGuarded({ command: process.execPath, args: ['-e', script], deathSignal })
}

describe('spawnGuarded', () => {
  test('keeps output until it is read, also after the program has ended', async () => {
    const program = await node(`console.log('out'); console.error('err')`)
    await program.exited
    await new Promise((done) => setImmediate(done))
    expect([await text(program.stdout), await text(program.stderr)]).toEqual(['out\n', 'err\n'])
  })

  test('signals the program itself, and resolves to the signal that ended it', async () => {
    const program = await node('setInterval(() => {}, 1000)')
    expect(isAlive(program.pid)).toBe(true)
    expect(program.kill('SIGKILL')).toBe(true)
    expect(await program.exited).toEqual({ code: null, signal: 'SIGKILL' })
    expect(await text(program.stderr)).toBe('')
    expect(program.kill('SIGKILL')).toBe(false)
  })

  test('the program can handle SIGINT itself, and its exit code is known', async () => {
    const program = await node(
      `process.on('SIGINT', () => process.exit(3)); console.log('up'); setInterval(() => {}, 1e3)`,
    )
    await once(createInterface({ input: program.stdout }), 'line')
    program.kill('SIGINT')
    expect(await program.exited).toEqual({ code: 3, signal: null })
  })

  test('rejects when the working directory does not exist', async () => {
    const options = { command: process.execPath, args: [], cwd: '/does/not/exist', deathSignal: 'SIGKILL' as const }
    await expect(spawnGuarded(options)).rejects.toThrow('ENOENT')
  })

  test('a program that does not exist ends with exit code 127', async () => {
    const program = await spawnGuarded({ command: '/does/not/exist', args: [], deathSignal: 'SIGKILL' })
    expect(await program.exited).toEqual({ code: 127, signal: null })
  })

  test('ends the program when the process that started it is killed, also when the program is paused', async () => {
    const module = new URL('spawn-guarded.ts', import.meta.url).href
    const script = `
      import { spawnGuarded } from ${JSON.stringify(module)}
      const sleep = { command: '/bin/sleep', args: ['600'], deathSignal: 'SIGTERM' }
      const [running, paused] = [await spawnGuarded(sleep), await spawnGuarded(sleep)]
      paused.kill('SIGSTOP')
      console.log(JSON.stringify([running.pid, paused.pid]))
      setInterval(() => {}, 1000)`
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = (await once(createInterface({ input: parent.stdout }), 'line')) as [string]
    const pids = JSON.parse(line) as number[]
    expect(pids.map(isAlive)).toEqual([true, true])
    parent.kill('SIGKILL')
    await waitUntil(() => !pids.some(isAlive), { message: 'the guarded programs to end' })
  })
})
