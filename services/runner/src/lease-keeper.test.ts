import { afterEach, describe, expect, test } from '@jest/globals'
import { type Lease, newId } from '@workflow-service/database'
import { createLogger } from '@workflow-service/service-kit'
import { waitUntil } from '@workflow-service/testkit'
import { createHeldSessions, type HeldSession, type HeldSessions } from './held-sessions.ts'
import { type LeaseKeeper, startLeaseKeeper } from './lease-keeper.ts'

const LEASE_MS = 15_000

let keeper: LeaseKeeper
afterEach(() => keeper.stop())

/** A keeper of some sessions whose clock stands still, unless it is set, and that renews by itself only if told so. */
function keep(
  options: {
    sessions?: number
    renewMs?: number
    renew?: (leases: readonly Lease[]) => Promise<readonly Lease[]>
  } = {},
) {
  const { renewMs = 600_000, renew = async (leases) => leases } = options
  const held = createHeldSessions(100)
  const add = () =>
    held.add({ lease: { sessionId: newId(), epoch: 3 }, organizationId: newId(), run: undefined, sources: [] })
  const sessions = Array.from({ length: options.sessions ?? 1 }, add)
  const renewals: (readonly Lease[])[] = []
  const lost: HeldSession[] = []
  const clock = { ms: 0 }
  keeper = startLeaseKeeper({
    held,
    store: {
      renew(leases) {
        renewals.push(leases)
        return renew(leases)
      },
    },
    leaseMs: LEASE_MS,
    renewMs,
    logger: createLogger({ service: 'test', level: 'silent' }),
    onLost: (session) => lost.push(session),
    now: () => clock.ms,
  })
  return { held, sessions, renewals, lost, clock }
}

describe('a runner that slept, as when it was paused', () => {
  test('renews all its leases before it takes more', async () => {
    const { clock, renewals, sessions } = keep({ sessions: 3 })
    clock.ms = LEASE_MS
    await keeper.ensureFresh()
    expect(renewals).toEqual([sessions.map(({ lease }) => lease)])
  })

  test('gives up the sessions whose renewal shows that others have taken them', async () => {
    const { clock, lost, sessions } = keep({
      sessions: 3,
      renew: async ([kept, again]) => [kept!, { ...again!, epoch: again!.epoch + 1 }],
    })
    clock.ms = LEASE_MS
    await keeper.ensureFresh()
    expect(lost).toEqual(sessions.slice(1))
  })

  test('takes nothing while its leases cannot be renewed, and asks again each time', async () => {
    const { clock, renewals, lost } = keep({
      renew: async () => {
        throw new Error('away')
      },
    })
    clock.ms = LEASE_MS
    await expect(keeper.ensureFresh()).rejects.toThrow('away')
    await expect(keeper.ensureFresh()).rejects.toThrow('away')
    expect(renewals).toHaveLength(2)
    expect(lost).toEqual([])
  })

  test('renews again when it slept while it renewed: the leases are as old as the question', async () => {
    const { clock, renewals } = keep({
      renew: async (leases) => {
        clock.ms += LEASE_MS
        return leases
      },
    })
    clock.ms = LEASE_MS
    await keeper.ensureFresh()
    await keeper.ensureFresh()
    expect(renewals).toHaveLength(2)
  })

  test('renews once for all who ask meanwhile', async () => {
    const { clock, renewals } = keep()
    clock.ms = LEASE_MS
    await Promise.all([keeper.ensureFresh(), keeper.ensureFresh()])
    expect(renewals).toHaveLength(1)
  })
})

test('leases that were renewed lately are not renewed for each take', async () => {
  const { clock, renewals } = keep()
  clock.ms = LEASE_MS / 2
  await keeper.ensureFresh()
  expect(renewals).toEqual([])
})

test.each([
  ['is being let go', (session: HeldSession) => void (session.isEnding = true)],
  ['has ended meanwhile', (session: HeldSession, held: HeldSessions) => held.remove(session)],
])('a session that %s is not lost', async (_what, end) => {
  const { clock, lost, held, sessions } = keep({
    renew: async () => {
      end(sessions[0]!, held)
      return []
    },
  })
  clock.ms = LEASE_MS
  await keeper.ensureFresh()
  expect(lost).toEqual([])
})

describe('by the clock', () => {
  test('leases are renewed again and again, also after it failed', async () => {
    let calls = 0
    const { renewals } = keep({
      renewMs: 1,
      renew: async (leases) => {
        if (++calls === 2) throw new Error('away')
        return leases
      },
    })
    await waitUntil(() => renewals.length > 3)
    expect(renewals.every((leases) => leases.length === 1)).toBe(true)
  })

  test('stopping waits for the renewal under way, and renews no more', async () => {
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    const { renewals } = keep({
      renewMs: 1,
      renew: async (leases) => {
        await answered
        return leases
      },
    })
    await waitUntil(() => renewals.length === 1)
    let isStopped = false
    const stopping = keeper.stop().then(() => (isStopped = true))
    await new Promise((resume) => setImmediate(resume))
    expect(isStopped).toBe(false)
    answer()
    await stopping
    expect(renewals).toHaveLength(1)
  })
})
