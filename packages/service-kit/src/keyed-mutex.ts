/**
 * Creates a function that runs a task after all earlier tasks of its key have ended, and resolves or rejects as the
 * task does. It keeps no memory for keys without a task.
 */
export function createKeyedMutex(): <Result>(key: string, task: () => Promise<Result>) => Promise<Result> {
  const lastTasks = new Map<string, Promise<unknown>>()
  return async (key, task) => {
    const running = (lastTasks.get(key) ?? Promise.resolve()).then(task, task)
    lastTasks.set(key, running)
    try {
      return await running
    } finally {
      if (lastTasks.get(key) === running) lastTasks.delete(key)
    }
  }
}
