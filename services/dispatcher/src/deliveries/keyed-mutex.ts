/** Runs one task per key at a time. */
export interface KeyedMutex {
  /** Runs the task after all earlier tasks of the key have ended, and resolves or rejects as the task does. */
  runExclusive<Result>(key: string, task: () => Promise<Result>): Promise<Result>
}

/** Creates a mutex that keeps no memory for keys without a task. */
export function createKeyedMutex(): KeyedMutex {
  const lastTasks = new Map<string, Promise<unknown>>()
  return {
    runExclusive: async (key, task) => {
      const previous = lastTasks.get(key) ?? Promise.resolve()
      const running = previous.then(task, task)
      lastTasks.set(key, running)
      try {
        return await running
      } finally {
        if (lastTasks.get(key) === running) lastTasks.delete(key)
      }
    },
  }
}
