/** Programs that tests run and npm cannot install. */
export type TestProgram = 'RabbitMQ' | 'Redis' | 'Chromium'

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

const REASONS = { RabbitMQ: 'the session queue', Redis: 'the shared rate limit', Chromium: 'the pages' }
const DEBIAN = { RabbitMQ: 'rabbitmq-server', Redis: 'redis-server', Chromium: 'chromium-headless-shell' }
const HOMEBREW = { RabbitMQ: 'rabbitmq', Redis: 'redis', Chromium: 'chromium' }

/** Plans the installation of missing programs: root on Debian installs them, others get the command. Undefined if none is missing. */
export function planInstall(missing: readonly TestProgram[], system: InstallPlatform): InstallPlan | undefined {
  if (missing.length === 0) return undefined
  const needs = missing.map((program) => `${program} (for ${REASONS[program]})`).join(', ')
  const lack = `Not installed here, and needed by tests: ${needs}.`
  const packages = missing.map((program) => DEBIAN[program])
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
  if (platform === 'darwin') return `brew install ${missing.map((program) => HOMEBREW[program]).join(' ')}`
  if (platform === 'win32') return `run npm test in WSL 2, there: ${aptGet}`
  return `the packages of your system for ${missing.join(', ')}`
}
