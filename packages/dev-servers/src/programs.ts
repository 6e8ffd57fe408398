import { installOnDebian } from './install-on-debian.ts'

/** Programs that npm cannot install: what needs them, their packages, and what can replace them. */
const PROGRAMS = {
  RabbitMQ: {
    reason: 'tests of the session queue',
    debian: 'rabbitmq-server',
    homebrew: 'rabbitmq',
    otherwise: 'docker compose up -d rabbitmq, with AMQP_URL as CONTRIBUTING.md says under "Set-up"',
  },
  Redis: { reason: 'tests of the shared rate limit', debian: 'redis-server', homebrew: 'redis' },
  Chromium: {
    reason: 'tests of the pages',
    debian: 'chromium-headless-shell',
    homebrew: 'chromium',
    otherwise: 'set CHROMIUM_PATH',
  },
  httpx: { reason: 'tests of the Python client', debian: 'python3-httpx', homebrew: 'httpx' },
  HAProxy: { reason: 'the rollout trial', debian: 'haproxy', homebrew: 'haproxy' },
  iproute2: { reason: 'the cluster trial', debian: 'iproute2', homebrew: 'iproute2mac' },
} as const

export type Program = keyof typeof PROGRAMS

/**
 * Locates a program. On Debian, root installs it first when there is none, which takes about 20 s. Rejects, with the
 * command that installs it, if that fails.
 */
export async function findOrInstall<Found>(
  program: Program,
  locate: () => Promise<Found | undefined>,
  log: (line: string) => void = () => {},
): Promise<Found> {
  const found = await locate()
  if (found !== undefined) return found
  const { reason, debian } = PROGRAMS[program]
  const lack = `Not installed here, and needed by ${reason}: ${program}.`
  const failure = await installOnDebian(debian, (line) => log(`${lack} ${line}`))
  const installed = await locate()
  if (installed !== undefined) return installed
  throw new Error(`${lack} Install it: ${installCommand(program)}${failure ? ` (${failure})` : ''}`)
}

/** The command that installs a program, as a person on this platform runs it. */
export function installCommand(program: Program, platform = process.platform): string {
  const { debian, homebrew, ...more } = PROGRAMS[program]
  const commands: Partial<Record<NodeJS.Platform, string>> = {
    darwin: `brew install ${homebrew}`,
    linux: `sudo apt-get install ${debian}, or the package of your system`,
    win32: `run npm test in WSL 2, there: sudo apt-get install ${debian}`,
  }
  return [commands[platform] ?? debian, ...('otherwise' in more ? [more.otherwise] : [])].join('; or ')
}
