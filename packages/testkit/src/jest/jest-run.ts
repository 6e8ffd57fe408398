/** One run of Jest, which may start servers that all its test files share. */
export interface JestRun {
  /** Random, so that runs on the same given server use different names. */
  id: number
  log: (line: string) => void
  /** Registers a function to call when the run ends. All are called at once. */
  atEnd: (stop: () => Promise<void>) => void
}
