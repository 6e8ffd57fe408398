import type { ErrorCode } from './errors.ts'

/** The messages of refused starts, in both APIs (contract README, "Starts and sessions"). */
export const START_CONFLICTS = {
  workflow_inactive: 'The workflow is inactive. Activate it, then start it again.',
  no_active_api_trigger:
    'The workflow has no active trigger whose source is "api". Add one, or activate the one it has.',
  no_users_with_access: 'No user has access to the workflow. Give access to at least one.',
  session_closed: 'The session is closed. Leave session_id out to start in a new one.',
} as const satisfies Partial<Record<ErrorCode, string>>
