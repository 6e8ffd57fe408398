import { access, constants } from 'node:fs/promises'
import { posix, win32 } from 'node:path'

/** The folders in which this process finds programs. */
export const searchPath = process.env['PATH'] || '/usr/local/bin:/usr/bin:/bin'

/** What decides where programs are. */
export interface ProgramPlatform {
  readonly platform: NodeJS.Platform
  readonly env: NodeJS.ProcessEnv
}

/** Where servers are installed that are not in PATH. */
const SERVER_FOLDERS = [
  '/usr/sbin',
  '/usr/local/sbin',
  '/opt/homebrew/sbin',
  '/usr/local/opt/rabbitmq/sbin',
  '/usr/bin',
]

/** Finds a program's file in PATH or in the folders where servers are usually installed. */
export async function findProgram(name: string): Promise<string | undefined> {
  for (const file of programFiles(name, process)) if (await isExecutable(file)) return file
  return undefined
}

/** The files that may be the program, in the order of the search. Windows adds the endings in PATHEXT. */
export function programFiles(name: string, { platform, env }: ProgramPlatform): string[] {
  if (platform !== 'win32') {
    return [...searchPath.split(posix.delimiter), ...SERVER_FOLDERS].map((folder) => posix.join(folder, name))
  }
  const endings = (env['PATHEXT'] ?? '.EXE;.CMD;.BAT').split(';')
  const folders = (env['PATH'] ?? env['Path'] ?? '').split(win32.delimiter).filter((folder) => folder !== '')
  return folders.flatMap((folder) => endings.map((ending) => win32.join(folder, `${name}${ending.toLowerCase()}`)))
}

/** Reports whether the file exists and this process may execute it. */
export async function isExecutable(file: string): Promise<boolean> {
  return await access(file, constants.X_OK).then(
    () => true,
    () => false,
  )
}
