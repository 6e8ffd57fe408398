import { runCli } from '../../src/run-cli.ts'

/** What a run of `wf` left behind. */
export interface WfResult {
  readonly exitStatus: number
  readonly stdout: string
  readonly stderr: string
  /** Standard output as JSON. */
  readonly json: () => unknown
}

/** Runs `wf` in this process, with this environment and no other, as if its output went to a file. */
export async function wf(
  env: NodeJS.ProcessEnv,
  args: readonly string[],
  options: { interrupted?: AbortSignal; isColoured?: boolean; columns?: number; onWrite?: (text: string) => void } = {},
): Promise<WfResult> {
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
    isColoured: options.isColoured ?? false,
    columns: options.columns,
  }
  // A local stack of whoever runs the tests is none of theirs.
  const ownEnv = { LOCAL_DIR: '/nonexistent', ...env }
  const exitStatus = await runCli(args, {
    terminal,
    env: ownEnv,
    ...(options.interrupted ? { interrupted: options.interrupted } : {}),
  })
  return { exitStatus, stdout, stderr, json: () => JSON.parse(stdout) as unknown }
}
