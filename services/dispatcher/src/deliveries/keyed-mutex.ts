/** Creates a mutex that keeps no memory for keys without a task. */
export function createKeyedMutex() {
  const lastTasks = new Map<string, Promise<unknown>>()
  return {
    /** Runs the task after all earlier tasks of the key have ended, and resolves or rejects as the task does. */
    runExclusive: async <Result>(key: string, task: () => Promise<Result>) => {
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
