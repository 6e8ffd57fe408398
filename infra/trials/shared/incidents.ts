import { setTimeout as pause } from 'node:timers/promises'
import type { Random } from './random.ts'
import type { Killable } from './system.ts'

/** Something that incidents hit. */
export interface Part extends Killable {
  readonly name: string
}

/** Returns the part, which calls `onHit` before an incident hits it and `onOver` when it is up again. */
export function watchPart(part: Part, onHit: () => void, onOver: () => void): Part {
  return {
    name: part.name,
    kill: async (signal) => {
      onHit()
      await part.kill(signal)
    },
    restart: async () => {
      await part.restart()
      onOver()
    },
    pause: () => {
      onHit()
      part.pause()
    },
    resume: () => {
      part.resume()
      onOver()
    },
  }
}

/** The shortest and the longest time between a kill and the restart, of a pause, and between two incidents. */
const DOWN_MS = [100, 3_000] as const
export const PAUSED_MS = [500, 8_000] as const
const CALM_MS = [300, 2_500] as const

/**
 * Kills random parts, one or two at once, until the time is over; sometimes pauses a runner or the dispatcher instead.
 * Resolves to the number of incidents when every part is up again.
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
}): Promise<number> {
  const { parts, random, untilMs, calmMs = CALM_MS, pausedMs = PAUSED_MS, log } = options
  let incidents = 0
  await pause(random.between(...calmMs))
  while (performance.now() < untilMs) {
    const first = random.pick(parts)
    const second = random.chance(0.3) ? random.pick(parts.filter((part) => part !== first)) : undefined
    const plans = [first, second].flatMap((part) => (part ? [planIncident(part, random, pausedMs)] : []))
    incidents += plans.length
    log(plans.map(({ description }) => description).join(' and '))
    await Promise.all(plans.map(({ act }) => act()))
    await pause(random.between(...calmMs))
  }
  return incidents
}

function planIncident(
  part: Part,
  random: Random,
  [shortestMs, longestMs]: readonly [number, number],
): { description: string; act: () => Promise<void> } {
  // PostgreSQL and RabbitMQ consist of several processes, and a pause would stop only one of them.
  const canPause = part.name.startsWith('runner') || part.name === 'dispatcher'
  if (canPause && random.chance(0.3)) {
    const pausedMs = random.between(shortestMs, longestMs)
    return {
      description: `pausing ${part.name} for ${Math.round(pausedMs)} ms`,
      act: async () => {
        part.pause()
        await pause(pausedMs)
        part.resume()
      },
    }
  }
  const downMs = random.between(...DOWN_MS)
  return {
    description: `killing ${part.name}, restarting it after ${Math.round(downMs)} ms`,
    act: async () => {
      await part.kill()
      await pause(downMs)
      await part.restart()
    },
  }
}
