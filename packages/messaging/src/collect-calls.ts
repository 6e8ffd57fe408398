/** Collects calls, and makes them when there are `most`, or `afterMs` after the first. */
export function collectCalls(most: number, afterMs: number) {
  const calls: (() => void)[] = []
  let timer: NodeJS.Timeout | undefined
  const makeAll = (): void => {
    clearTimeout(timer)
    timer = undefined
    for (const call of calls.splice(0)) call()
  }
  return {
    add(call: () => void): void {
      calls.push(call)
      timer ??= setTimeout(makeAll, afterMs)
      if (calls.length >= most) makeAll()
    },
    /** Makes the calls that are left. */
    makeAll,
  }
}
