import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { findOrInstall, findProgram } from '@workflow-service/dev-servers'

const execute = promisify(execFile)

/** Nodes with an address and a network stack each, on a bridge of this machine. */
export type Network = Awaited<ReturnType<typeof createNetwork>>

export interface NetworkNode {
  readonly namespace: string
  readonly address: string
}

/** Creates network namespaces. Needs root and iproute2, which root on Debian gets installed. */
export async function createNetwork(count: number) {
  if (process.getuid?.() !== 0) throw new Error('Network namespaces need root: run this command as root.')
  await findOrInstall('iproute2', () => findProgram('ip'))
  // Several trials may run at once: names and addresses contain the process id. 198.18.0.0/15 is reserved for tests.
  const id = process.pid.toString(36)
  const prefix = `198.18.${process.pid % 256}`
  const bridge = `wfb${id}`
  const nodes = Array.from({ length: count }, (_, index): NetworkNode => ({
    namespace: `wf-${id}-${index + 1}`,
    address: `${prefix}.${index + 11}`,
  }))
  const forOthers = async (node: NetworkNode, action: 'add' | 'del'): Promise<void> => {
    for (const other of nodes.filter((candidate) => candidate !== node)) {
      await route(action, node, other)
      await route(action, other, node)
    }
  }
  await removeDeadNetworks()
  const removeOnExit = (): void => removeNetwork(id)
  process.once('exit', removeOnExit)
  const close = async (): Promise<void> => {
    process.off('exit', removeOnExit)
    removeNetwork(id)
  }
  try {
    await ip('link', 'add', bridge, 'type', 'bridge')
    await ip('addr', 'add', `${prefix}.1/24`, 'dev', bridge)
    await ip('link', 'set', bridge, 'up')
    for (const [index, { namespace, address }] of nodes.entries()) {
      const outside = `wfv${id}${index + 1}`
      await ip('netns', 'add', namespace)
      await ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace)
      await ip('link', 'set', outside, 'master', bridge, 'up')
      await ip('-n', namespace, 'addr', 'add', `${address}/24`, 'dev', 'eth0')
      await ip('-n', namespace, 'link', 'set', 'eth0', 'up')
      await ip('-n', namespace, 'link', 'set', 'lo', 'up')
    }
  } catch (error) {
    await close()
    throw error
  }
  return {
    nodes,
    /** Drops every packet between this node and the others; this machine still reaches all of them. */
    isolate: async (node: NetworkNode) => await forOthers(node, 'add'),
    heal: async (node: NetworkNode) => await forOthers(node, 'del'),
    close,
  }
}

async function ip(...args: string[]): Promise<void> {
  await execute('ip', args)
}

/** Adds or removes a route that drops what a node sends to another. */
async function route(action: 'add' | 'del', from: NetworkNode, to: NetworkNode): Promise<void> {
  await ip('-n', from.namespace, 'route', action, 'blackhole', `${to.address}/32`)
}

/** Removes the namespaces and the bridge of a trial. A pair of interfaces ends with its namespace. */
function removeNetwork(id: string): void {
  for (const namespace of listNamespaces().filter((name) => name.startsWith(`wf-${id}-`))) {
    execFileSync('ip', ['netns', 'del', namespace])
  }
  try {
    execFileSync('ip', ['link', 'del', `wfb${id}`], { stdio: 'ignore' })
  } catch {
    // It was not created, or is gone.
  }
}

/** Removes what trials left behind that were killed. */
async function removeDeadNetworks(): Promise<void> {
  const ids = new Set(listNamespaces().flatMap((name) => /^wf-([\da-z]+)-\d+$/.exec(name)?.[1] ?? []))
  for (const id of ids) if (!existsSync(`/proc/${Number.parseInt(id, 36)}`)) removeNetwork(id)
}

function listNamespaces(): string[] {
  return execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' })
    .split('\n')
    .map((line) => line.split(' ')[0] ?? '')
    .filter((name) => name !== '')
}
