import { type ExitStatus, runCli } from '@workflow-service/cli'

/** Runs `wf` in this process with the settings that the local stack wrote to `localDir`, and no others. */
export async function wf(
  localDir: string,
  ...args: string[]
): Promise<{ exitStatus: ExitStatus; stdout: string; stderr: string }> {
  let stdout = ''
  let stderr = ''
  const terminal = {
    write: (text: string) => void (stdout += text),
    writeError: (text: string) => void (stderr += text),
    isColoured: false,
    columns: undefined,
  }
  const exitStatus = await runCli(args, { terminal, env: { LOCAL_DIR: localDir } })
  return { exitStatus, stdout, stderr }
}
