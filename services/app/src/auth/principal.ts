import type { SignedInUser } from '@workflow-service/database'

/** A caller: where the request comes from. */
export interface Visitor {
  readonly address: string
  readonly userAgent: string | null
}

/** The person who is signed in, as a user of the organization in which the person works. */
export interface Principal extends SignedInUser, Visitor {}
