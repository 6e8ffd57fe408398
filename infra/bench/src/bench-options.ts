/** The options of the command line, and where progress is logged. */
export interface BenchOptions {
  /** Rounds of each measurement; the figure is their median. */
  readonly rounds: number
  /** Length of one round under load. */
  readonly seconds: number
  /** Rows of the large tables in the parts `list` and `log`. */
  readonly largeTable: number
  /** Starts, and deliveries, in the part `scale`. */
  readonly rows: number
  /** The folder for a CPU profile of each service. Undefined for none, because profiling costs time. */
  readonly profile?: string | undefined
  readonly logProgress: (line: string) => void
}
