/** Webhook sources, look-ups, keys of models, and the encryption of their secrets. */
export * from './lookups.ts'
export * from './model-keys.ts'
export * from './pause-source.ts'
export * from './secrets.ts'
export * from './source-edits.ts'
export * from './source-lists.ts'
export * from './source-state.ts'
export * from './sources-for-agent.ts'
