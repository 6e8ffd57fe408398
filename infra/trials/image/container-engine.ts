import { findProgram } from '@workflow-service/dev-servers'
import { runProgram } from '@workflow-service/testkit'

export interface CommandLine {
  readonly command: string
  readonly args: string[]
}

/** Builds images and runs programs from one, in the network of this machine. */
export interface ContainerEngine {
  readonly name: string
  build(options: { dockerfile: string; context: string; tag: string; nodeImage: string }): CommandLine
  /** Prepares running programs from the image. */
  open(tag: string): Promise<Container>
}

export interface Container extends AsyncDisposable {
  /** The command that runs a program as the image's user. */
  run(args: readonly string[], env?: Readonly<Record<string, string>>): CommandLine
  /** Whether a signal for the command reaches the program. */
  readonly passesSignals: boolean
}

/** Finds Docker with a daemon that runs, or else Buildah. @throws Error that says what to install. */
export async function findContainerEngine(): Promise<ContainerEngine> {
  const docker = await findProgram('docker')
  const isRunning = docker && (await runProgram(docker, ['info']).then(Boolean, () => false))
  if (docker && isRunning) return createDocker(docker)
  const buildah = await findProgram('buildah')
  if (buildah) return createBuildah(buildah)
  throw new Error(
    `${docker ? 'The Docker daemon does not run' : 'There is no Docker'}, and no Buildah: start Docker, or install buildah, ` +
      'which needs no daemon (apt-get install buildah), and run this as root.',
  )
}

function createDocker(command: string): ContainerEngine {
  const hardening = ['--read-only', '--tmpfs=/tmp', '--cap-drop=ALL', '--security-opt=no-new-privileges:true']
  return {
    name: 'docker',
    build: ({ dockerfile, context, tag, nodeImage }) => ({
      command,
      args: ['build', '--build-arg', `NODE_IMAGE=${nodeImage}`, '--file', dockerfile, '--tag', tag, context],
    }),
    open: async (tag) => ({
      passesSignals: true,
      run: (args, env = {}) => ({
        command,
        args: ['run', '--rm', '--init', '--network=host', ...hardening, ...envFlags(env), tag, ...args],
      }),
      [Symbol.asyncDispose]: async () => {},
    }),
  }
}

function createBuildah(command: string): ContainerEngine {
  // It needs neither a daemon nor namespaces, and shares the machine's network.
  const isolation = '--isolation=chroot'
  return {
    name: 'buildah',
    build: ({ dockerfile, context, tag, nodeImage }) => ({
      command,
      args: ['build', isolation, '--build-arg', `NODE_IMAGE=${nodeImage}`, '--file', dockerfile, '--tag', tag, context],
    }),
    open: async (tag) => {
      const container = (await runProgram(command, ['from', tag])).trim()
      return {
        // buildah kills the program instead.
        passesSignals: false,
        run: (args, env = {}) => ({
          command,
          args: ['run', isolation, ...envFlags(env), container, '--', ...args],
        }),
        [Symbol.asyncDispose]: async () => void (await runProgram(command, ['rm', container])),
      }
    },
  }
}

function envFlags(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`])
}
