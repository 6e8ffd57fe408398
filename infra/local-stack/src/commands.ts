import { readLocalDir } from '@workflow-service/cli/local-folder'
import { toShownPath } from '@workflow-service/cli/terminal'

/** Returns the command that runs `wf` with the settings of this folder. */
export function wfCommand(localDir: string): string {
  return withSettings(folderSetting(localDir), 'npm run -s wf --')
}

/** Returns the command that starts the local stack on this folder, with further settings. */
export function startCommand(localDir: string, settings: Readonly<Record<string, string>>): string {
  return withSettings({ ...folderSetting(localDir), ...settings }, 'npm start')
}

/**
 * Returns the command with settings, for sh; on Windows for PowerShell, where a setting lasts until the window is
 * closed.
 */
export function withSettings(
  settings: Readonly<Record<string, string>>,
  command: string,
  platform = process.platform,
): string {
  const entries = Object.entries(settings)
  if (platform !== 'win32')
    return [...entries.map(([name, value]) => `${name}=${quoteForSh(value)}`), command].join(' ')
  return [...entries.map(([name, value]) => `$env:${name}='${value.replaceAll("'", "''")}'`), command].join('; ')
}

function folderSetting(localDir: string): Record<string, string> {
  return localDir === readLocalDir({}) ? {} : { LOCAL_DIR: toShownPath(localDir) }
}

function quoteForSh(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}
