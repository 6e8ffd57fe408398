/** Webhook sources, and the encryption of their secrets. */
export * from './secrets.ts'
export * from './webhook-sources.ts'
