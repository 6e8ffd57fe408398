import { expect } from '@jest/globals'
import type { Db } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import { runCli } from '../../src/run-cli.ts'
import type { Terminal } from '../../src/terminal.ts'

/** Runs `wf` in this process with only this environment, as if its output went to a file. */
export async function wf(
  env: NodeJS.ProcessEnv,
  args: readonly string[],
  options: {
    interrupted?: AbortSignal
    onWrite?: (text: string) => void
    ask?: Terminal['ask']
    /** What standard input has. */
    input?: string | undefined
  } = {},
) {
  let stdout = ''
  let stderr = ''
  const terminal = {
    write: (text: string) => {
      stdout += text
      options.onWrite?.(text)
    },
    writeError: (text: string) => {
      stderr += text
    },
    isColoured: false,
    columns: undefined,
    ask: options.ask,
  }
  // The tests must not find a local stack that runs in this repository, or a saved key.
  const ownEnv = { LOCAL_DIR: '/nonexistent', XDG_CONFIG_HOME: '/nonexistent', ...env }
  const { interrupted, input } = options
  const exitStatus = await runCli(args, { terminal, env: ownEnv, interrupted, input })
  return { exitStatus, stdout, stderr, json: () => JSON.parse(stdout) as unknown }
}

/** Matches the result of a command that fails and says this, and nothing else if it begins as the output does. */
export const failure = (text: string | RegExp, exitStatus = 1) => {
  const containing = typeof text === 'string' ? expect.stringContaining(text) : expect.stringMatching(text)
  return { exitStatus, stderr: typeof text === 'string' && text.startsWith('Error: ') ? text : containing }
}

/** Waits until a watching command has read this table, and waits for news. */
export async function waitUntilWatching({ pool }: Db, table: string): Promise<void> {
  await waitUntil(async () => {
    const { rows } = await pool.query(
      `SELECT FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'wf' AND state = 'idle' AND query LIKE $1`,
      [`%${table}%`],
    )
    return rows.length > 0
  })
}

/** Runs `wf` until Ctrl-C (`interrupt`) or until it ends by itself. `output` gives what it has written so far. */
export function watchWf(env: NodeJS.ProcessEnv, args: readonly string[], input?: string) {
  const interruption = new AbortController()
  let output = ''
  const onWrite = (text: string) => void (output += text)
  const ended = wf(env, args, { interrupted: interruption.signal, onWrite, input })
  const interrupt = async () => {
    interruption.abort()
    return await ended
  }
  return { output: () => output, ended, interrupt }
}
