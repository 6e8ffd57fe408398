import type { AppContext } from '../../app-context.ts'
import type { AppHandlers, AppRules } from '../app-handlers.ts'

/** Handlers for workflows, their triggers, files, people and schedules. */
export function workflowsHandlers(_ctx: AppContext) {
  return {} satisfies Partial<AppHandlers>
}

export const workflowsRules = {} satisfies AppRules
