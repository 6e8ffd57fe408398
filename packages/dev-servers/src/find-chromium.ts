import { win32 } from 'node:path'
import { findProgram, isExecutable, type ProgramPlatform } from './find-program.ts'
import { findOrInstall } from './programs.ts'

// The headless shell is first: without the windows and services of a full browser, tests of pages need a quarter less
// processor time.
const NAMES = [
  'chromium-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome-stable',
  'google-chrome',
  'chrome',
]

const MAC_FILES = [
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/** Where the installer puts Chrome on Windows, for all users or for one, and where it puts Chromium. */
export function windowsFiles({ env }: Pick<ProgramPlatform, 'env'>): string[] {
  const folders = ['ProgramFiles', 'ProgramFiles(x86)', 'LOCALAPPDATA'].flatMap((name) => env[name] ?? [])
  const programs = ['Google\\Chrome\\Application\\chrome.exe', 'Chromium\\Application\\chrome.exe']
  return folders.flatMap((folder) => programs.map((program) => win32.join(folder, program)))
}

/**
 * Finds the file of an installed Chromium or Chrome that runs headless; `path` (`CHROMIUM_PATH`) names another one. On
 * Debian, root installs the headless shell first when there is none, which takes about 20 s. Rejects, with what to do,
 * if that fails.
 */
export async function findChromium(log?: (line: string) => void, path = process.env['CHROMIUM_PATH']): Promise<string> {
  if (!path) return await findOrInstall('Chromium', locate, log)
  if (await isExecutable(path)) return path
  throw new Error(`The browser in CHROMIUM_PATH cannot be executed: ${path}`)
}

async function locate(): Promise<string | undefined> {
  for (const name of NAMES) {
    const file = await findProgram(name)
    if (file) return file
  }
  for (const file of process.platform === 'win32' ? windowsFiles(process) : MAC_FILES)
    if (await isExecutable(file)) return file
  return undefined
}
