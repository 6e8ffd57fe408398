import { loadavg } from 'node:os'
import { callManagementApi } from '@workflow-service/dev-servers'
import type { SoakSystem } from './soak-system.ts'

/** What one service holds. */
export interface ServiceSample {
  readonly rssMiB: number
  readonly heapMiB: number
  /** Sockets, timers' handles and pipes of Node. */
  readonly handles: number
  /** Open files and sockets. */
  readonly openFiles: number
  /** Seconds of CPU time so far. */
  readonly cpuSeconds: number
}

/** What everything holds at one moment. */
export interface Sample {
  /** In ms since 1970. */
  readonly at: number
  readonly services: Readonly<Record<string, ServiceSample>>
  /** Connections of the services to PostgreSQL. */
  readonly connections: number
  readonly databaseMiB: number
  readonly tables: Readonly<Record<string, { readonly mib: number; readonly live: number; readonly dead: number }>>
  readonly broker: { readonly rssMiB: number; readonly connections: number; readonly ready: number }
  /** The machine's load average of the last minute. */
  readonly load: number
}

/** Takes a sample. Rejects while PostgreSQL or RabbitMQ does not answer. */
export async function takeSample({ steady, db, environment }: SoakSystem): Promise<Sample> {
  const services: Record<string, ServiceSample> = {}
  for (const [name, { metricsUrl }] of Object.entries(steady)) {
    const response = await fetch(`${metricsUrl}/metrics`, { signal: AbortSignal.timeout(5_000) })
    services[name] = toServiceSample(await response.text())
  }
  const { rows: tables } = await db.pool.query<{ name: string; mib: number; live: number; dead: number }>(
    `SELECT relname AS name, pg_total_relation_size(relid) / 1048576.0::float8 AS mib, n_live_tup::int AS live,
       n_dead_tup::int AS dead
     FROM pg_stat_user_tables`,
  )
  const { rows } = await db.pool.query<{ databaseMiB: number; connections: number }>(
    `SELECT pg_database_size(current_database()) / 1048576.0::float8 AS "databaseMiB",
       (SELECT count(*)::int FROM pg_stat_activity
        WHERE datname = current_database() AND application_name NOT IN ('soak', '')) AS connections`,
  )
  const { managementUrl } = environment.rabbitMq
  const ask = async <Answer>(path: string): Promise<Answer> =>
    (await (await callManagementApi(managementUrl, 'GET', path)).json()) as Answer
  const [node] = await ask<{ mem_used: number }[]>('/api/nodes')
  const overview = await ask<{ object_totals: { connections: number }; queue_totals: { messages_ready?: number } }>(
    '/api/overview',
  )
  return {
    at: Date.now(),
    services,
    ...rows[0]!,
    tables: Object.fromEntries(tables.map(({ name, ...size }) => [name, size])),
    broker: {
      rssMiB: (node?.mem_used ?? 0) / 2 ** 20,
      connections: overview.object_totals.connections,
      ready: overview.queue_totals.messages_ready ?? 0,
    },
    load: loadavg()[0]!,
  }
}

function toServiceSample(metrics: string): ServiceSample {
  const value = (name: string): number => Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(metrics)?.[1])
  return {
    rssMiB: value('process_resident_memory_bytes') / 2 ** 20,
    heapMiB: value('nodejs_heap_size_used_bytes') / 2 ** 20,
    handles: value('nodejs_active_handles_total'),
    openFiles: value('process_open_fds'),
    cpuSeconds: value('process_cpu_seconds_total'),
  }
}
