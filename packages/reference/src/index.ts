/** The reference page of an API, made from its OpenAPI document and from guides in Markdown. */
export type { OpenApiDocument } from './openapi-document.ts'
export type { Guide, Reference } from './render-reference.ts'
export { serveReference } from './serve-reference.ts'
