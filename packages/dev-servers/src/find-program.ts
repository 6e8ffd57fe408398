import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'

/** The folders in which this process finds programs. */
export const searchPath = process.env['PATH'] || '/usr/local/bin:/usr/bin:/bin'

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
  for (const folder of [...searchPath.split(delimiter), ...SERVER_FOLDERS]) {
    const file = join(folder, name)
    if (await isExecutable(file)) return file
  }
  return undefined
}

/** Reports whether the file exists and this process may execute it. */
export async function isExecutable(file: string): Promise<boolean> {
  return await access(file, constants.X_OK).then(
    () => true,
    () => false,
  )
}
