/** Work of all runs in one turn of the event loop, after which further work waits for the next one. */
const WORK_MS_PER_TURN = 5

let spentMs = 0
/** The works that wait, by organization. The first organization is served next, unless it is `lastServed`. */
const waiting = new Map<string, (() => void)[]>()
let lastServed = ''
let isServing = false

/**
 * Does work of a run that takes milliseconds. When the works of this turn of the event loop have taken 5 ms together,
 * the next one waits for a later turn: many payloads of large examples, built in one turn, would hold up all others.
 * Organizations with waiting work are served in turn, each in the order of its calls, so that one with many runs delays
 * another's by a turn. What else happens in a turn does not count, or small payloads would wait behind the sockets of
 * other runs.
 */
export async function shareEventLoop<Result>(organizationId: string, work: () => Result): Promise<Result> {
  if (spentMs >= WORK_MS_PER_TURN) {
    const { promise, resolve } = Promise.withResolvers<void>()
    const works = waiting.get(organizationId) ?? []
    works.push(resolve)
    waiting.set(organizationId, works)
    await promise
  }
  if (spentMs === 0) setImmediate(beginTurn)
  const beganMs = performance.now()
  try {
    return work()
  } finally {
    spentMs += performance.now() - beganMs
    // After the microtasks: until then the run goes on, and its next small work need not wait for a turn again.
    if (waiting.size > 0 && !isServing) {
      isServing = true
      process.nextTick(serveNext)
    }
  }
}

function beginTurn(): void {
  spentMs = 0
  serveNext()
}

function serveNext(): void {
  isServing = false
  if (spentMs >= WORK_MS_PER_TURN) return
  const served = waiting.get(lastServed)
  if (served) {
    // Behind the organizations that have come meanwhile.
    waiting.delete(lastServed)
    waiting.set(lastServed, served)
  }
  for (const [organizationId, works] of waiting) {
    works.shift()?.()
    if (works.length === 0) waiting.delete(organizationId)
    lastServed = organizationId
    return
  }
}
