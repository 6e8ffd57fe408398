import { setTimeout as pause } from 'node:timers/promises'
import type { Random } from './random.ts'
import type { Part } from './service-system.ts'

/** How long a part stays away, in milliseconds. */
const AWAY_MS = [100, 3_000] as const
const PAUSED_MS = [500, 8_000] as const
const CALM_MS = [300, 2_500] as const

/**
 * Kills parts at random until the time is over: one, or two at once; sometimes a runner or the dispatcher is paused
 * instead. Resolves with the number of incidents when everything is up again.
 */
export async function causeIncidents(options: {
  parts: readonly Part[]
  random: Random
  untilMs: number
  log: (line: string) => void
}): Promise<number> {
  const { parts, random, untilMs, log } = options
  let incidents = 0
  await pause(random.between(...CALM_MS))
  while (performance.now() < untilMs) {
    const first = random.pick(parts)
    const second = random.chance(0.3) ? random.pick(parts.filter((part) => part !== first)) : undefined
    const plans = [first, second].flatMap((part) => (part ? [planIncident(part, random)] : []))
    incidents += plans.length
    log(plans.map(({ words }) => words).join(' and '))
    await Promise.all(plans.map(({ act }) => act()))
    await pause(random.between(...CALM_MS))
  }
  return incidents
}

function planIncident(part: Part, random: Random): { words: string; act: () => Promise<void> } {
  // Postgres and RabbitMQ are many processes, of which a pause would stop one.
  const canPause = part.name.startsWith('runner') || part.name === 'dispatcher'
  if (canPause && random.chance(0.3)) {
    const pausedMs = random.between(...PAUSED_MS)
    return {
      words: `pausing ${part.name} for ${Math.round(pausedMs)} ms`,
      act: async () => {
        part.pause()
        await pause(pausedMs)
        part.resume()
      },
    }
  }
  const awayMs = random.between(...AWAY_MS)
  return {
    words: `killing ${part.name}, back after ${Math.round(awayMs)} ms`,
    act: async () => {
      await part.kill()
      await pause(awayMs)
      await part.restart()
    },
  }
}
