export * from './call.ts'
export * from './lists.ts'
export * from './new-id.ts'
export * from './queries.ts'
