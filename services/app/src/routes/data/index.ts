import type { AppContext } from '../../app-context.ts'
import type { AppHandlers, AppRules } from '../app-handlers.ts'

/** Handlers for webhook sources, deliveries, runs, sessions, API keys, usage and events. */
export function dataHandlers(_ctx: AppContext) {
  return {} satisfies Partial<AppHandlers>
}

export const dataRules = {} satisfies AppRules
