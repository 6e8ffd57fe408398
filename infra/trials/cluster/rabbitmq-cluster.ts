import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  callManagementApi,
  findRabbitMq,
  makeRunFolder,
  type GuardedProcess,
  rabbitMqFolders,
  spawnGuarded,
} from '@workflow-service/dev-servers'
import { waitUntil } from '@workflow-service/testkit'
import type { Network, NetworkNode } from './network.ts'

/** A RabbitMQ cluster with a node in each namespace of a network. */
export type RabbitMqCluster = Awaited<ReturnType<typeof startRabbitMqCluster>>

const START_TIMEOUT_MS = 240_000
/** Production's default is 60 s: how long a node takes to notice that another is unreachable. */
const NET_TICK_SECONDS = 8

/**
 * Starts the nodes and waits until they are one cluster. `pause_minority` stops a node that the majority cannot reach.
 */
export async function startRabbitMqCluster(network: Network) {
  const { server, epmd } = await findRabbitMq()
  const folder = await makeRunFolder()
  const running = new Map<NetworkNode, GuardedProcess>()
  const epmds: GuardedProcess[] = []

  const spawn = async (node: NetworkNode, command: string, args: string[]): Promise<GuardedProcess> => {
    const nodeFolder = join(folder, node.namespace)
    await mkdir(join(nodeFolder, 'home'), { recursive: true })
    return await spawnGuarded({
      command: 'ip',
      args: ['netns', 'exec', node.namespace, command, ...args],
      env: environmentOf(node, nodeFolder),
      cwd: nodeFolder,
      deathSignal: 'SIGKILL',
    })
  }
  const start = async (node: NetworkNode): Promise<void> => {
    const process = await spawn(node, server, [])
    process.stdout.resume()
    process.stderr.resume()
    running.set(node, process)
  }
  const untilRunning = async (count: number): Promise<void> => {
    await waitUntil(async () => (await runningNodes(network.nodes)) === count, {
      timeoutMs: START_TIMEOUT_MS,
      intervalMs: 500,
      message: () => `${count} nodes of RabbitMQ to form a cluster`,
    })
  }
  const kill = async (node: NetworkNode): Promise<void> => {
    const process = running.get(node)
    process?.kill('SIGKILL')
    await process?.exited
  }
  const stop = async (): Promise<void> => {
    for (const node of network.nodes) await kill(node)
    for (const process of epmds) {
      process.kill('SIGKILL')
      await process.exited
    }
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  }
  try {
    for (const node of network.nodes) {
      await configure(join(folder, node.namespace), node, network.nodes)
      epmds.push(await spawn(node, epmd, []))
      await start(node)
      // One after the other, so that each finds the cluster of the earlier ones.
      await untilRunning(running.size)
    }
  } catch (error) {
    await stop()
    throw error
  }
  return {
    /** Names all nodes. */
    url: `amqp://guest:guest@${network.nodes.map(({ address }) => address).join(',')}`,
    /** Of the first node. */
    managementUrl: managementUrlOf(network.nodes[0]!),
    /** The leader of the session queue and its members that are up, as any reachable node but `except` reports them. */
    async findLeader(except?: NetworkNode) {
      const queue = await askAny<{ leader: string; online: string[] }>(
        network.nodes.filter((node) => node !== except),
        '/api/queues/%2F/workflow.sessions',
      )
      const leader = network.nodes.find(({ address }) => queue.leader.endsWith(`@${address}`))
      if (!leader || leader === except) throw new Error('The queue has no leader')
      return { leader, online: queue.online.length }
    },
    kill,
    async restart(node: NetworkNode) {
      await start(node)
      await untilRunning(network.nodes.length)
    },
    stop,
  }
}

async function configure(folder: string, { address }: NetworkNode, nodes: readonly NetworkNode[]): Promise<void> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'enabled_plugins'), '[rabbitmq_management].\n')
  await writeFile(
    join(folder, 'rabbitmq.conf'),
    [
      `listeners.tcp.1 = ${address}:5672`,
      `management.tcp.ip = ${address}`,
      'management.tcp.port = 15672',
      'loopback_users = none',
      'cluster_partition_handling = pause_minority',
      'cluster_formation.peer_discovery_backend = classic_config',
      ...nodes.map((node, index) => `cluster_formation.classic_config.nodes.${index + 1} = ${nameOf(node)}`),
      'log.file = false',
      'log.console = true',
      'log.console.level = warning',
      'disk_free_limit.absolute = 50MB',
      '',
    ].join('\n'),
  )
}

function environmentOf(node: NetworkNode, folder: string): Record<string, string> {
  return {
    ...rabbitMqFolders(folder),
    RABBITMQ_USE_LONGNAME: 'true',
    RABBITMQ_NODENAME: nameOf(node),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: `-setcookie cluster-trial -kernel net_ticktime ${NET_TICK_SECONDS}`,
  }
}

function nameOf({ address }: NetworkNode): string {
  return `rabbit@${address}`
}

function managementUrlOf({ address }: NetworkNode): string {
  return `http://guest:guest@${address}:15672`
}

async function runningNodes(nodes: readonly NetworkNode[]): Promise<number> {
  const known = await askAny<{ running: boolean }[]>(nodes, '/api/nodes').catch(() => [])
  return known.filter(({ running }) => running).length
}

async function askAny<Answer>(nodes: readonly NetworkNode[], path: string): Promise<Answer> {
  let failure: unknown
  for (const node of nodes) {
    try {
      const answer = await callManagementApi(managementUrlOf(node), 'GET', path)
      if (answer.ok) return (await answer.json()) as Answer
      failure = new Error(`${path} answered ${answer.status}`)
    } catch (error) {
      failure = error
    }
  }
  throw failure
}
