import { readdir, readFile } from 'node:fs/promises'

/** Clock ticks per second in /proc: USER_HZ, 100 on every Linux that Node supports. */
const TICKS_PER_SECOND = 100

/** The CPU time of a process so far, user and system, in ms. */
export async function cpuMs(pid: number): Promise<number> {
  const fields = await statFields(pid)
  return fields === undefined ? 0 : ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS_PER_SECOND
}

/** The CPU time of a process and its living children, in ms: PostgreSQL with its backends. */
export async function cpuMsWithChildren(pid: number): Promise<number> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  let total = await cpuMs(pid)
  for (const candidate of pids) {
    const fields = await statFields(candidate)
    if (fields !== undefined && Number(fields[1]) === pid) total += await cpuMs(candidate)
  }
  return total
}

/** The resident memory of a process in MiB. */
export async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1_024
}

/** The most resident memory that a process has had, in MiB; null if it has ended. */
export async function peakResidentMiB(pid: number): Promise<number | null> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const [, kib] = /^VmHWM:\s+(\d+) kB/m.exec(status) ?? []
  return kib === undefined ? null : Number(kib) / 1_024
}

/** The fields of /proc/PID/stat after the name: [0] the state, [1] the parent, [11] and [12] user and system ticks. */
async function statFields(pid: number): Promise<string[] | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}
