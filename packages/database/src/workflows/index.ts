/** Workflows with their triggers, files and people: documents, lists and edits. */
export * from './auto-run-schedule.ts'
export * from './files.ts'
export { readWorkflowDetail } from './workflow-detail.ts'
export * from './workflow-edits.ts'
export * from './workflow-parts.ts'
export * from './workflow-rows.ts'
export * from './workflow-versions.ts'
export * from './workflows.ts'
