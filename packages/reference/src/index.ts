/** The reference page of an API, made from its OpenAPI document and from guides in Markdown. */
export type { OpenApiDocument, Operation } from './openapi-document.ts'
export { type CodeSample, createSamples } from './samples.ts'
export type { ErrorEntry, Guide, Reference } from './render-reference.ts'
export { serveReference, type ServedReference } from './serve-reference.ts'
