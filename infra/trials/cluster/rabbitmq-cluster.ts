import { callManagementApi } from '@workflow-service/dev-servers'
import { type PrivateRabbitMq, startRabbitMq, waitUntil } from '@workflow-service/testkit'
import type { Network, NetworkNode } from './network.ts'

/** Production's default is 60 s: how long a node takes to notice that another is unreachable. */
const NET_TICK_SECONDS = 8

/**
 * Starts a node in each namespace of a network, which form one cluster. `pause_minority` stops a node that the majority
 * cannot reach.
 */
export async function startRabbitMqCluster({ nodes }: Network) {
  await using stack = new AsyncDisposableStack()
  const settings = [
    'loopback_users = none',
    'cluster_partition_handling = pause_minority',
    'cluster_formation.peer_discovery_backend = classic_config',
    ...nodes.map(({ address }, index) => `cluster_formation.classic_config.nodes.${index + 1} = rabbit@${address}`),
  ]
  const erlangArguments = `-setcookie cluster-trial -kernel net_ticktime ${NET_TICK_SECONDS}`
  const servers = new Map<NetworkNode, PrivateRabbitMq>()
  /** Asks the nodes, until one answers. */
  const ask = async <Answer>(path: string, except?: NetworkNode): Promise<Answer> => {
    const reachable = [...servers].filter(([node]) => node !== except)
    return await Promise.any(
      reachable.map(async ([, { managementUrl }]) => {
        const answer = await callManagementApi(managementUrl, 'GET', path)
        if (!answer.ok) throw new Error(`${path} answered ${answer.status}`)
        return (await answer.json()) as Answer
      }),
    )
  }
  const untilAllRun = async (): Promise<void> => {
    await waitUntil(
      async () => {
        const known = await ask<{ running: boolean }[]>('/api/nodes')
        return known.filter(({ running }) => running).length === servers.size
      },
      { timeoutMs: 240_000, intervalMs: 500, message: 'the nodes to form a cluster' },
    )
  }
  for (const network of nodes) {
    const server = await startRabbitMq({ network, settings, erlangArguments })
    stack.defer(() => server.stop())
    servers.set(network, server)
    // One after the other, so that each finds the cluster of the earlier ones.
    await untilAllRun()
  }
  const resources = stack.move()
  return {
    /** Names all nodes. */
    url: `amqp://guest:guest@${nodes.map(({ address }) => address).join(',')}`,
    /** Of the first node. */
    managementUrl: servers.get(nodes[0]!)!.managementUrl,
    /** The leader of the session queue and its members that are up, as any reachable node but `except` reports them. */
    async findLeader(except?: NetworkNode) {
      const queue = await ask<{ leader: string; online: string[] }>('/api/queues/%2F/workflow.sessions', except)
      const leader = nodes.find(({ address }) => queue.leader.endsWith(`@${address}`))
      if (!leader || leader === except) throw new Error('The queue has no leader')
      return { leader, online: queue.online.length }
    },
    kill: async (node: NetworkNode) => await servers.get(node)!.kill(),
    async restart(node: NetworkNode) {
      await servers.get(node)!.restart()
      await untilAllRun()
    },
    stop: async () => await resources.disposeAsync(),
  }
}
