import { afterEach, describe, expect, test } from '@jest/globals'
import { type Lease, newId } from '@workflow-service/database'
import { createLogger } from '@workflow-service/service-kit'
import { waitUntil } from '@workflow-service/testkit'
import { type ActiveSessions, createActiveSessions, type LeasedSession } from './active-sessions.ts'
import { type LeaseRenewer, startLeaseRenewer } from './lease-renewer.ts'

const LEASE_MS = 15_000

let renewer: LeaseRenewer
afterEach(() => renewer.stop())

type RenewableLease = Lease & { readonly isRenewed: boolean }
const asRenewed = (lease: Lease): RenewableLease => ({ ...lease, isRenewed: true })

interface RenewerOptions {
  readonly sessions?: number
  readonly renewMs?: number
  readonly renew?: (leases: readonly Lease[]) => Promise<RenewableLease[]>
}

/** A lease renewer for some sessions. Its clock stands still unless it is set, and it renews only when asked to. */
function startRenewer({
  sessions: count = 1,
  renewMs = 600_000,
  renew = async (leases) => leases.map(asRenewed),
}: RenewerOptions = {}) {
  const activeSessions = createActiveSessions(100)
  const sessions = Array.from({ length: count }, () =>
    activeSessions.add({ lease: { sessionId: newId(), epoch: 3 }, organizationId: newId() }),
  )
  const renewals: (readonly Lease[])[] = []
  const lost: LeasedSession[] = []
  const clock = { ms: 0 }
  const sessionStore = {
    renew(leases: readonly Lease[]) {
      renewals.push(leases)
      return renew(leases)
    },
  }
  const logger = createLogger({ service: 'test', level: 'silent' })
  const ctx = { activeSessions, sessionStore, timing: { leaseMs: LEASE_MS, renewMs }, logger }
  renewer = startLeaseRenewer(ctx, (session) => lost.push(session), { retryMs: 1, now: () => clock.ms })
  return { activeSessions, sessions, renewals, lost, clock }
}

describe('ensureFresh, after the process was paused', () => {
  test('renews all leases', async () => {
    const { clock, renewals, sessions } = startRenewer({ sessions: 3 })
    clock.ms = LEASE_MS
    await renewer.ensureFresh()
    expect(renewals).toEqual([sessions.map(({ sessionId, epoch }) => ({ sessionId, epoch }))])
  })

  test('reports the leases that other runners have acquired', async () => {
    const { clock, lost, sessions } = startRenewer({
      sessions: 3,
      renew: async ([kept, again]) => [asRenewed(kept!), asRenewed({ ...again!, epoch: again!.epoch + 1 })],
    })
    clock.ms = LEASE_MS
    await renewer.ensureFresh()
    expect(lost).toEqual(sessions.slice(1))
  })

  test('rejects while the leases cannot be renewed, and tries again at each call', async () => {
    const { clock, renewals, lost } = startRenewer({
      renew: async () => {
        throw new Error('unavailable')
      },
    })
    clock.ms = LEASE_MS
    await expect(renewer.ensureFresh()).rejects.toThrow('unavailable')
    await expect(renewer.ensureFresh()).rejects.toThrow('unavailable')
    expect(renewals).toHaveLength(2)
    expect(lost).toEqual([])
  })

  test('renews again if the process was paused during the renewal', async () => {
    const { clock, renewals } = startRenewer({
      renew: async (leases) => {
        clock.ms += LEASE_MS
        return leases.map(asRenewed)
      },
    })
    clock.ms = LEASE_MS
    await renewer.ensureFresh()
    await renewer.ensureFresh()
    expect(renewals).toHaveLength(2)
  })

  test('renews once for concurrent calls', async () => {
    const { clock, renewals } = startRenewer()
    clock.ms = LEASE_MS
    await Promise.all([renewer.ensureFresh(), renewer.ensureFresh()])
    expect(renewals).toHaveLength(1)
  })
})

test('ensureFresh does not renew leases that were renewed recently', async () => {
  const { clock, renewals } = startRenewer()
  clock.ms = LEASE_MS
  await renewer.ensureFresh()
  clock.ms += LEASE_MS / 2
  await renewer.ensureFresh()
  expect(renewals).toHaveLength(1)
})

test.each([
  ['is being released', (session: LeasedSession) => void (session.isEnding = true)],
  ['has ended meanwhile', (session: LeasedSession, sessions: ActiveSessions) => sessions.remove(session)],
])('a session that %s is not reported as lost', async (_what, end) => {
  const { clock, lost, activeSessions, sessions } = startRenewer({
    renew: async () => {
      end(sessions[0]!, activeSessions)
      return []
    },
  })
  clock.ms = LEASE_MS
  await renewer.ensureFresh()
  expect(lost).toEqual([])
})

describe('by the timer', () => {
  test('a lease whose row is locked is kept, and renewed again soon', async () => {
    const renewMs = 1_000
    const { renewals, lost } = startRenewer({
      sessions: 2,
      renewMs,
      renew: async (leases) => leases.map((lease, index) => ({ ...lease, isRenewed: index === 0 })),
    })
    const startedMs = performance.now()
    await waitUntil(() => renewals.length >= 4)
    expect(performance.now() - startedMs).toBeLessThan(4 * renewMs)
    expect(lost).toEqual([])
  })

  test('no renewal follows after stop', async () => {
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    const { renewals } = startRenewer({
      renewMs: 1,
      renew: async (leases) => {
        await answered
        return leases.map(asRenewed)
      },
    })
    await waitUntil(() => renewals.length === 1)
    const stopping = renewer.stop()
    answer()
    await stopping
    expect(renewals).toHaveLength(1)
  })
})
