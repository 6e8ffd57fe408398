/** A runner's lease of a session. Each acquisition increments the session's epoch, so an epoch has one owner. */
export interface Lease {
  readonly sessionId: string
  readonly epoch: number
}
