import { join, resolve } from 'node:path'

const REPOSITORY_DIR = resolve(import.meta.dirname, '../../..')

/** Returns the folder of the local stack's data, settings and logs: `LOCAL_DIR`, or `.local` in the repository. */
export function readLocalDir(env: NodeJS.ProcessEnv = process.env): string {
  const given = env['LOCAL_DIR']?.trim()
  return given ? resolve(given) : join(REPOSITORY_DIR, '.local')
}

/** Returns the path of the file through which the local stack gives `wf` its settings. */
export function localEnvFile(localDir: string): string {
  return join(localDir, 'env')
}
