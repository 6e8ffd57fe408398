import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

export const APT_GET = '/usr/bin/apt-get'

// Installing a Debian server package also starts the system's own server, unless /usr/sbin/policy-rc.d forbids it. The
// lock makes parallel installations take turns: the first to end would remove the policy while the other still needs
// it.
const INSTALL_SCRIPT = `
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f $policy' EXIT
  printf '#!/bin/sh\\nexit 101\\n' > $policy && chmod 755 $policy || exit 1
fi
apt="apt-get -q -o DPkg::Lock::Timeout=120"
install() { $apt install --yes --no-install-recommends "$@"; }
install "$@" || { $apt update && install "$@"; }`

/**
 * Installs a Debian package without starting a server of it. Only root on Debian can. Resolves to the reason of a
 * failure; to undefined when the package is installed or this system has no apt-get.
 */
export async function installOnDebian(
  packageName: string,
  log: (line: string) => void = () => {},
): Promise<string | undefined> {
  if (process.platform !== 'linux' || !existsSync(APT_GET)) return undefined
  if (process.getuid?.() !== 0) return 'only root can install it'
  log(`Installing ${packageName} with apt-get, without starting a server …`)
  const env = {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    DEBIAN_FRONTEND: 'noninteractive',
  }
  const lock = join(tmpdir(), 'workflow-service-apt.lock')
  try {
    await execute('flock', [lock, 'sh', '-c', INSTALL_SCRIPT, 'sh', packageName], { env, maxBuffer: 1 << 26 })
    return undefined
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string }
    return `apt-get failed: ${stderr.trim().split('\n').at(-1) || message}`
  }
}
