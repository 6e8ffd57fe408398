/**
 * The one source of truth for every wire shape, as data: one TypeBox constant is the type, the ajv validator and the
 * OpenAPI component. It holds no behaviour beyond validation, and knows neither HTTP nor SQL.
 */
export { ajv, compile } from './ajv.ts'
export * from './errors.ts'
export { toFieldErrors } from './field-errors.ts'
export * from './internal-api.ts'
export * from './journal.ts'
export * from './manifest.ts'
export * from './messages.ts'
export * from './openapi.ts'
export * from './operations.ts'
export * from './payload-schema.ts'
export { describePublicApi } from './public-api.ts'
export * from './resources.ts'
export * from './schema.ts'
export * from './text.ts'
