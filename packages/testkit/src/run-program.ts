import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Runs a program to its end, and resolves to what it wrote to stdout. Rejects with all that it wrote, if it fails. */
export async function runProgram(
  command: string,
  args: readonly string[],
  { env, ...options }: { cwd?: string; env?: Readonly<Record<string, string>>; timeout?: number } = {},
): Promise<string> {
  try {
    const all = { ...options, env: { ...process.env, ...env }, maxBuffer: 1 << 26 }
    return (await promisify(execFile)(command, args, all)).stdout
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}${stderr}`, { cause: error })
  }
}
