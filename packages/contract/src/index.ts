/**
 * Every shape on the wire, as data: one TypeBox constant is the TypeScript type, the ajv validator and the OpenAPI
 * component. This package validates and describes; it uses neither HTTP nor SQL. The contract in words is README.md.
 */
export * from './errors.ts'
export * from './internal/openapi.ts'
export * from './internal/operations.ts'
export * from './internal/resources.ts'
export * from './journal.ts'
export * from './limits.ts'
export * from './manifest.ts'
export * from './messages.ts'
export * from './public/openapi.ts'
export * from './public/operations.ts'
export * from './public/resources.ts'
export { compile } from './schema/ajv.ts'
export { VERIFICATION_TYPE } from './schema/check-json-value.ts'
export { findExampleErrors } from './schema/example-errors.ts'
export { toFieldErrors } from './schema/field-errors.ts'
export { countJsonBytes } from './schema/json-size.ts'
export * from './schema/payload-mismatches.ts'
export * from './schema/payload-schema.ts'
export * from './schema/text.ts'
export { UUID_PATTERN } from './schema/types.ts'
