import { readdir, readFile } from 'node:fs/promises'

/** Clock ticks per second in /proc: USER_HZ, 100 on every Linux that Node supports. */
const TICKS_PER_SECOND = 100

/**
 * The CPU time so far, user and system, of a process and its descendants, in ms: PostgreSQL has its backends, RabbitMQ
 * its programs.
 */
export async function cpuMs(pid: number): Promise<number> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const stats = await Promise.all(pids.map(async (each) => ({ pid: each, ...(await readStat(each)) })))
  const sumOf = (root: number): number =>
    stats.reduce(
      (sum, { pid: each, parent, cpuMs: own = 0, endedMs = 0 }) =>
        sum + (each === root ? own + endedMs : parent === root ? sumOf(each) : 0),
      0,
    )
  return sumOf(pid)
}

export async function residentMiB(pid: number): Promise<number> {
  return (await readStatusMiB(pid, 'VmRSS')) ?? Number.NaN
}

/** The most resident memory that a process has had, in MiB; null if it has ended. */
export async function peakResidentMiB(pid: number): Promise<number | null> {
  return await readStatusMiB(pid, 'VmHWM')
}

async function readStatusMiB(pid: number, field: string): Promise<number | null> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const [, kib] = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status) ?? []
  return kib === undefined ? null : Number(kib) / 1_024
}

/**
 * From /proc/PID/stat; its fields after the name are: [0] the state, [1] the parent, [11] and [12] user and system
 * ticks, [13] and [14] those of its children that have ended.
 */
async function readStat(pid: number): Promise<{ parent: number; cpuMs: number; endedMs: number } | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  if (stat === undefined) return undefined
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const msOf = (user: number): number => ((Number(fields[user]) + Number(fields[user + 1])) * 1_000) / TICKS_PER_SECOND
  return { parent: Number(fields[1]), cpuMs: msOf(11), endedMs: msOf(13) }
}
