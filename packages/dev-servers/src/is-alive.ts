/** Reports whether a process with this id exists, also one of another user. */
export function isAlive(pid: number): boolean {
  try {
    // 0 and negative ids are process groups.
    return pid > 0 && process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
