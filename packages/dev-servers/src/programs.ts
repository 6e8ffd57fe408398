import { installOnDebian } from './install-on-debian.ts'

/** Programs that tests run and npm cannot install: what needs them, and their packages. */
const PROGRAMS = {
  RabbitMQ: { reason: 'the session queue', debian: 'rabbitmq-server', homebrew: 'rabbitmq' },
  Redis: { reason: 'the shared rate limit', debian: 'redis-server', homebrew: 'redis' },
  Chromium: { reason: 'the pages', debian: 'chromium-headless-shell', homebrew: 'chromium' },
  httpx: { reason: 'the Python client', debian: 'python3-httpx', homebrew: 'httpx' },
} as const

export type TestProgram = keyof typeof PROGRAMS

/**
 * Locates a program. On Debian, root installs it first when there is none, which takes about 20 s. Rejects, with
 * `advice`, if that fails.
 */
export async function findOrInstall<Found>(
  program: TestProgram,
  locate: () => Promise<Found | undefined>,
  { advice, log }: { advice: string; log?: (line: string) => void },
): Promise<Found> {
  const found = await locate()
  if (found !== undefined) return found
  const failure = await installOnDebian(PROGRAMS[program].debian, log)
  const installed = await locate()
  if (installed !== undefined) return installed
  throw new Error(`${program} is needed and not installed${failure ? ` (${failure})` : ''}: ${advice}`)
}

/** What decides how programs are installed. */
export interface InstallPlatform {
  readonly platform: NodeJS.Platform
  readonly hasAptGet: boolean
  readonly isRoot: boolean
}

export interface InstallPlan {
  /** What is missing, why it is needed, and what is done or has to be done about it. */
  readonly message: string
  /** The command that installs it. */
  readonly command: string
  /** The Debian packages to install now; empty where this process cannot. */
  readonly packages: readonly string[]
}

/**
 * Plans the installation of missing programs: root on Debian installs them, others get the command. Undefined if none
 * is missing.
 */
export function planInstall(missing: readonly TestProgram[], system: InstallPlatform): InstallPlan | undefined {
  if (missing.length === 0) return undefined
  const needs = missing.map((program) => `${program} (for ${PROGRAMS[program].reason})`).join(', ')
  const lack = `Not installed here, and needed by tests: ${needs}.`
  const packages = missing.map((program) => PROGRAMS[program].debian)
  const aptGet = `apt-get install --yes --no-install-recommends ${packages.join(' ')}`
  if (system.hasAptGet && system.isRoot) {
    return {
      message: `${lack}\nInstalling with apt-get, without starting a server: ${packages.join(' ')}`,
      command: aptGet,
      packages,
    }
  }
  const command = commandFor(missing, system, `sudo ${aptGet}`)
  return { message: `${lack}\nTheir tests fail until it is installed: ${command}`, command, packages: [] }
}

function commandFor(missing: readonly TestProgram[], { platform, hasAptGet }: InstallPlatform, aptGet: string): string {
  if (hasAptGet) return aptGet
  if (platform === 'darwin') return `brew install ${missing.map((program) => PROGRAMS[program].homebrew).join(' ')}`
  if (platform === 'win32') return `run npm test in WSL 2, there: ${aptGet}`
  return `the packages of your system for ${missing.join(', ')}`
}
