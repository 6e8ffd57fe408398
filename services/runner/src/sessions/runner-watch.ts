import {
  type Database,
  forgetRunners,
  holdRunnerLock,
  isDatabaseUnavailable,
  listUnlockedRunners,
} from '@workflow-service/database'
import { describeError, repeat } from '@workflow-service/service-kit'
import type { RunnerContext } from '../runner-context.ts'

/**
 * Checks in a row that find a lock free before its runner counts as ended. A runner whose connection breaks, as all do
 * when PostgreSQL restarts, has its lock again before.
 */
const CHECKS = 3

interface WatchContext extends Pick<RunnerContext, 'owner' | 'logger'> {
  readonly db: Pick<Database, 'pool' | 'createClient'>
  readonly timing: Pick<RunnerContext['timing'], 'leaseMs' | 'checkRunnersMs'>
}

/**
 * Reports the runners that have ended without a stop, up to three checks after that. `onEnded` gets the names of all
 * whose leases may not have expired yet: with each check, because a sweep skips sessions whose rows are locked.
 */
export function watchRunners(
  { db, owner, timing, logger }: WatchContext,
  onEnded: (owners: readonly string[]) => void,
) {
  const { leaseMs, checkRunnersMs: checkMs } = timing
  /** After this many checks, all leases of a runner that has ended have expired, also by time. */
  const forgetAfter = CHECKS + Math.ceil((2 * leaseMs) / checkMs)
  let checks = new Map<string, number>()

  const onError = (task: string) => (error: unknown) => {
    // The scheduler says that the database is unavailable.
    if (!isDatabaseUnavailable(error)) logger.warn({ task, error: describeError(error) }, 'task.failed')
  }
  const lock = repeat({
    name: 'hold the lock of this runner',
    intervalMs: checkMs / 2,
    logger,
    onError: onError('hold the lock of this runner'),
    run: (signal) => holdRunnerLock(db, owner, signal),
  })
  const check = async (): Promise<void> => {
    const unlocked = (await listUnlockedRunners(db)).filter((name) => name !== owner)
    const forgotten = unlocked.filter((name) => checks.get(name) === forgetAfter)
    if (forgotten.length > 0) await forgetRunners(db, forgotten)
    const before = ended()
    checks = new Map(
      unlocked.filter((name) => !forgotten.includes(name)).map((name) => [name, (checks.get(name) ?? 0) + 1]),
    )
    const now = ended()
    for (const name of now.filter((each) => !before.includes(each))) logger.warn({ runner: name }, 'runner.ended')
    if (now.length + before.length > 0) onEnded(now)
  }
  const ended = (): string[] => [...checks].filter(([, count]) => count >= CHECKS).map(([name]) => name)
  const watch = repeat({
    name: 'watch the other runners',
    intervalMs: checkMs,
    firstDelayMs: checkMs,
    logger,
    onError(error) {
      // After an outage, the others need time to connect again, also those that counted as ended before.
      checks.clear()
      onEnded([])
      onError('watch the other runners')(error)
    },
    run: check,
  })

  return {
    /** Gives up the lock. `hasReleased`: whether this runner has no lease, so that others need not take any over. */
    async stop(hasReleased: boolean) {
      await watch.stop()
      // First, as it may be about to record the runner.
      await lock.stop()
      if (hasReleased) await forgetRunners(db, [owner]).catch(() => {})
    },
  }
}
