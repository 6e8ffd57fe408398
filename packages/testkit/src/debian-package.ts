import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { access, constants } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { readConfig } from './config.ts'

const execute = promisify(execFile)

const usualFolders = ['/usr/sbin', '/usr/local/sbin', '/opt/homebrew/sbin', '/usr/local/opt/rabbitmq/sbin', '/usr/bin']

/** The program's file, in PATH or where servers usually are. */
export async function findProgram(name: string): Promise<string | undefined> {
  const folders = [...readConfig().path.split(delimiter), ...usualFolders]
  for (const folder of folders) {
    const file = join(folder, name)
    if (await isExecutable(file)) return file
  }
  return undefined
}

/** Whether it is there and may be run. */
export async function isExecutable(file: string): Promise<boolean> {
  return await access(file, constants.X_OK).then(
    () => true,
    () => false,
  )
}

// Each package starts the system's own server when it is installed, unless a policy forbids that. Under a lock, since
// test files install side by side, and the one that ends first must not lift the policy for the other.
const installScript = `
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f $policy' EXIT
  printf '#!/bin/sh\\nexit 101\\n' > $policy && chmod 755 $policy || exit 1
fi
apt="apt-get -q -o DPkg::Lock::Timeout=120"
$apt update && $apt install --yes --no-install-recommends "$1"`

/**
 * Installs a server's package without starting the server. Resolves to why it failed or was not tried; undefined when it
 * went well.
 */
export async function installOnDebian(packageName: string, say: (line: string) => void): Promise<string | undefined> {
  if (process.platform !== 'linux' || !existsSync('/usr/bin/apt-get')) return undefined
  if (process.getuid?.() !== 0) return 'only root can install it'
  say(`Installing ${packageName} with apt-get, once …`)
  const env = {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    DEBIAN_FRONTEND: 'noninteractive',
  }
  const lock = join(tmpdir(), 'workflow-service-apt.lock')
  try {
    await execute('flock', [lock, 'sh', '-c', installScript, 'sh', packageName], { env, maxBuffer: 1 << 26 })
    return undefined
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string }
    return `apt-get failed: ${stderr.trim().split('\n').at(-1) || message}`
  }
}
