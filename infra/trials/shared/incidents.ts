import { setTimeout as pause } from 'node:timers/promises'
import { callManagementApi } from '@workflow-service/dev-servers'
import type { Random } from './random.ts'
import type { Killable } from './system.ts'

/** Something that incidents hit. */
export interface Part extends Killable {
  readonly name: string
}

/** What was done to a part. */
export interface Incident {
  readonly name: string
  readonly isPause: boolean
  /** In ms since 1970. */
  readonly beganAt: number
  /** Infinity until the part is up again. */
  endedAt: number
}

/** The shortest and the longest time between a kill and the restart, of a pause, and between two incidents. */
const DOWN_MS = [100, 3_000] as const
export const PAUSED_MS = [500, 8_000] as const
const CALM_MS = [300, 2_500] as const

/**
 * Kills random parts, one or two at once, until the time is over; sometimes pauses a runner or the dispatcher instead.
 * Resolves when every part is up again.
 */
export async function causeIncidents(options: {
  parts: readonly Part[]
  random: Random
  untilMs: number
  /** The shortest and the longest time between two incidents. Default 0.3 to 2.5 s. */
  calmMs?: readonly [number, number]
  /** The shortest and the longest pause of a part. Default 0.5 to 8 s. */
  pausedMs?: readonly [number, number]
  log: (line: string) => void
  /** Gets each incident when it begins. */
  incidents: Incident[]
}): Promise<void> {
  const { parts, random, untilMs, calmMs = CALM_MS, pausedMs = PAUSED_MS, log, incidents } = options
  const hit = async (part: Part): Promise<void> => {
    const { name } = part
    // PostgreSQL and RabbitMQ consist of several processes, and a pause would stop only one of them.
    const canPause = name.startsWith('runner') || name === 'dispatcher'
    const isPause = canPause && random.chance(0.3)
    const ms = random.between(...(isPause ? pausedMs : DOWN_MS))
    log(`${isPause ? 'pausing' : 'killing'} ${name} for ${Math.round(ms)} ms`)
    const incident: Incident = { name, isPause, beganAt: Date.now(), endedAt: Infinity }
    incidents.push(incident)
    await (isPause ? part.pause() : part.kill())
    await pause(ms)
    await (isPause ? part.resume() : part.restart())
    incident.endedAt = Date.now()
  }
  await pause(random.between(...calmMs))
  while (performance.now() < untilMs) {
    const first = random.pick(parts)
    const second = random.chance(0.3) ? random.pick(parts.filter((part) => part !== first)) : undefined
    await Promise.all([first, second].flatMap((part) => (part ? hit(part) : [])))
    await pause(random.between(...calmMs))
  }
}

/** Closes every client's connection to RabbitMQ. */
export async function closeBrokerConnections(managementUrl: string): Promise<void> {
  const response = await callManagementApi(managementUrl, 'GET', '/api/connections')
  for (const { name } of (await response.json()) as { name: string }[]) {
    await callManagementApi(managementUrl, 'DELETE', `/api/connections/${encodeURIComponent(name)}`)
  }
}
