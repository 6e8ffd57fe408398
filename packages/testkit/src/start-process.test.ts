import { describe, expect, test } from '@jest/globals'
import { freePort } from '@workflow-service/dev-servers'
import { startProcess } from './start-process.ts'

const idle = 'setInterval(() => {}, 1000)'

describe('startProcess', () => {
  test('resolves when the line is written, and gives the output', async () => {
    const script = `console.error('a warning'); console.log('{"level":30,"msg":"listening"}'); ${idle}`
    const program = await startProcess({ args: ['-e', script], readyWhen: { line: /listening/ } })
    expect(program.jsonLines).toEqual([{ level: 30, msg: 'listening' }])
    expect(await program.stop()).toEqual({ code: null, signal: 'SIGTERM' })
    expect(program.stderr).toBe('a warning\n')
  })

  test('resolves when the URL answers 200', async () => {
    const port = await freePort()
    const script = `
      let asked = 0
      require('http').createServer((q, a) => a.writeHead(++asked > 2 ? 200 : 503).end()).listen(${port}, '127.0.0.1')`
    const program = await startProcess({ args: ['-e', script], readyWhen: { url: `http://127.0.0.1:${port}/readyz` } })
    expect((await fetch(`http://127.0.0.1:${port}`)).status).toBe(200)
    await program.stop()
  })

  test('rejects with the output of a program that ends before it is ready', async () => {
    const args = ['-e', `console.error('DATABASE_URL is missing'); process.exit(1)`]
    await expect(startProcess({ args, readyWhen: { line: 'listening' } })).rejects.toThrow(
      'The program ended with 1 before it was ready; its output:\nDATABASE_URL is missing',
    )
  })

  test('rejects and kills a program that is not ready in time', async () => {
    // A shell: Node may take longer to start.
    const args = ['-c', 'echo pid $$; exec sleep 60']
    const starting = startProcess({ command: '/bin/sh', args, readyWhen: { line: 'listening' }, timeoutMs: 2000 })
    const failure = await starting.then(
      () => '',
      (error: Error) => error.message,
    )
    expect(failure).toMatch(/^Waited 2000 ms for the program to be ready; its output:\npid \d+\n$/)
    const pid = Number(/pid (\d+)/.exec(failure)?.[1])
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  })

  test('passes only the given environment', async () => {
    process.env['WF_LEAK'] = 'leaked'
    const script = `console.log(JSON.stringify({ leak: process.env.WF_LEAK, given: process.env.GIVEN })); ${idle}`
    const program = await startProcess({ args: ['-e', script], env: { GIVEN: 'yes' }, readyWhen: { line: 'given' } })
    expect(program.jsonLines).toEqual([{ given: 'yes' }])
    await program.stop()
    delete process.env['WF_LEAK']
  })

  test('stops a program that ignores SIGTERM, and one that is paused', async () => {
    const script = `process.on('SIGTERM', () => {}); console.log('up'); ${idle}`
    const stubborn = await startProcess({ args: ['-e', script], readyWhen: { line: 'up' } })
    expect(await stubborn.stop(50)).toEqual({ code: null, signal: 'SIGKILL' })

    const paused = await startProcess({ args: ['-e', `console.log('up'); ${idle}`], readyWhen: { line: 'up' } })
    paused.kill('SIGSTOP')
    expect(await paused.stop()).toEqual({ code: null, signal: 'SIGTERM' })
  })
})
