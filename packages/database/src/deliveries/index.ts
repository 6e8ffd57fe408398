/** The log of outbound requests: claims, outcomes and reads. */
export * from './deliveries.ts'
export * from './delivery-reads.ts'
export * from './resend-jobs.ts'
export { stepsOfRow, toStepRows } from './step-rows.ts'
