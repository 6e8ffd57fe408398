import type { ManifestChange, ManifestOutcome, PlannedThing } from './apply-context.ts'
import type { AppliedApiKey } from './plan-api-keys.ts'
import type { PlannedLookup } from './plan-lookups.ts'
import type { PlannedWebhookSource } from './plan-webhook-sources.ts'
import type { AppliedWorkflow } from './plan-workflows.ts'

/** What a person changed in the application since a manifest with this thing was last applied. */
export interface PersonEdit {
  readonly kind: PlannedThing['kind']
  readonly id: string
  readonly name: string
  /** The person's newest change. */
  readonly eventId: string
  readonly action: string
  readonly by: string
  readonly at: Date
  readonly count: number
}

/** The result of applying a manifest. Its webhook sources and look-ups are planned here; the dispatcher saves them. */
export interface AppliedManifest {
  organization: { id: string; name: string; outcome: ManifestOutcome; changes: readonly ManifestChange[] }
  users: { id: string; email: string; outcome: ManifestOutcome; changes: readonly ManifestChange[] }[]
  apiKeys: AppliedApiKey[]
  webhookSources: PlannedWebhookSource[]
  lookups: PlannedLookup[]
  workflows: AppliedWorkflow[]
  sessions: { id: string; open: boolean; outcome: ManifestOutcome; changes: readonly ManifestChange[] }[]
  /** What people changed in the application since the last apply, and this one overwrites. */
  overwrites: PersonEdit[]
}
