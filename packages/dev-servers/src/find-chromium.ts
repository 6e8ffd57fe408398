import { findProgram, isExecutable } from './find-program.ts'
import { installOnDebian } from './install-on-debian.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome', 'chrome']

const MAC_FILES = [
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/**
 * Finds the file of an installed Chromium or Chrome; `CHROMIUM_PATH` names another one. On Debian, root installs it first,
 * which takes about 30 s. Rejects, with what to do, when there is none.
 */
export async function findChromium(options: { log?: (line: string) => void; path?: string } = {}): Promise<string> {
  const { log, path = process.env['CHROMIUM_PATH'] } = options
  if (path) {
    if (await isExecutable(path)) return path
    throw new Error(`The browser in CHROMIUM_PATH cannot be executed: ${path}`)
  }
  const found = await locate()
  if (found) return found
  const failure = await installOnDebian('chromium', log)
  const installed = await locate()
  if (installed) return installed
  throw new Error(
    `Chromium is needed and not installed${failure ? ` (${failure})` : ''}: install chromium or Chrome, or set CHROMIUM_PATH`,
  )
}

async function locate(): Promise<string | undefined> {
  for (const name of NAMES) {
    const file = await findProgram(name)
    if (file) return file
  }
  for (const file of MAC_FILES) if (await isExecutable(file)) return file
  return undefined
}
