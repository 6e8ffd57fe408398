/** The parts of an OpenAPI 3.1 document that the page shows. */
export interface OpenApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Omit<Operation, 'method' | 'path'>>>>>
  readonly webhooks: OpenApiDocument['paths']
  readonly components: {
    readonly headers: Readonly<Record<string, { readonly description: string }>>
    readonly securitySchemes: Readonly<Record<string, { readonly description: string }>>
  }
}

/** An operation with its place in the document. */
export interface Operation {
  readonly method: string
  /** Of a webhook: its name. */
  readonly path: string
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: readonly string[]
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, ResponseObject | { readonly $ref: string }>>
}

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly description?: string
  readonly schema: Schema
}

export interface ResponseObject {
  readonly description: string
  /** What `error.code` may be: of errors alone. None: the status is declared, and never answered. */
  readonly 'x-error-codes'?: readonly string[]
  readonly headers?: Readonly<Record<string, unknown>>
  readonly content?: Content
}

interface MediaType {
  readonly schema: Schema
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}

export type Content = Readonly<Record<string, MediaType>>

export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly format?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly default?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly examples?: readonly unknown[]
  readonly 'x-enumDescriptions'?: Readonly<Record<string, string>>
}

/** Lists the operations of paths, or of webhooks, in the order of the document. */
export function operationsOf(paths: OpenApiDocument['paths']): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  )
}

/** Follows a reference to a component. */
export function resolve<Value extends object>(
  document: OpenApiDocument,
  value: Value | { readonly $ref: string },
): Value {
  if (!('$ref' in value) || typeof value.$ref !== 'string') return value as Value
  return value.$ref
    .slice(2)
    .split('/')
    .reduce<unknown>((node, name) => (node as Record<string, unknown>)[name], document) as Value
}

/** The schema of a JSON body. */
export function schemaOf(content: Content | undefined): Schema | undefined {
  return content?.['application/json']?.schema
}

/** The examples of a JSON body. */
export function examplesOf(content: Content | undefined): unknown[] {
  return Object.values(content?.['application/json']?.examples ?? {}).map(({ value }) => value)
}
