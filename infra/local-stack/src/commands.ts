import { readLocalDir } from '@workflow-service/cli/local-folder'
import { toShownPath } from '@workflow-service/cli/terminal'

/** Returns the command that runs `wf` with the settings of this folder. */
export function wfCommand(localDir: string): string {
  return withSettings(localDir, {}, 'npm run -s wf --')
}

/** Returns the command that starts the local stack on this folder, with further settings. */
export function startCommand(localDir: string, settings: Readonly<Record<string, number>> = {}): string {
  return withSettings(localDir, settings, 'npm start')
}

function withSettings(localDir: string, settings: Readonly<Record<string, number>>, command: string): string {
  const path = toShownPath(localDir)
  const folder = localDir === readLocalDir({}) ? [] : [`LOCAL_DIR=${/^[\w./-]+$/.test(path) ? path : `'${path}'`}`]
  return [...folder, ...Object.entries(settings).map(([name, value]) => `${name}=${value}`), command].join(' ')
}
