import type { TObject, TSchema } from 'typebox'
import { Closed } from './objects.ts'

/** What the operations of all APIs have: a server mounts them, an OpenAPI document describes them. */
export interface BaseOperation {
  readonly id: string
  readonly method: string
  /** With parameters in braces: `/v1/workflows/{workflow_id}`. */
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly params?: TSchema
  readonly query?: TSchema
  readonly headers?: TSchema
  readonly body?: TSchema
}

/** An operation in a table, by its id. */
export type OperationRow<Operation extends BaseOperation> = Omit<Operation, 'id' | 'method' | 'path' | 'params'> & {
  /** Method and path. */
  readonly route: `${'get' | 'put' | 'post' | 'delete'} /${string}`
}

type ParamName<Path> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | ParamName<Rest> : never

/** The schema of the parameters of a path; nothing for a path without any. */
export type ParamsOf<Path, Schemas extends Partial<Record<string, TSchema>>> = [ParamName<Path>] extends [never]
  ? unknown
  : { readonly params: TObject<{ [Name in ParamName<Path> & keyof Schemas]: Schemas[Name] & TSchema }> }

type Routed<Route, Schemas extends Record<string, TSchema>> = Route extends `${infer Method} ${infer Path}`
  ? { readonly method: Method; readonly path: Path } & ParamsOf<Path, Schemas>
  : never

/** Makes the schema of a path's parameters. */
export function paramsOf(path: string, schemaOf: (name: string) => TSchema | undefined): { params?: TSchema } {
  const params = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = '']) => [name, schemaOf(name)] as const)
  if (params.length === 0) return {}
  return { params: Closed('Params', 'Path parameters.', Object.fromEntries(params) as Record<string, TSchema>) }
}

/** Completes each row with its id and with what its route says. `schemas`: the parameters of paths, by name. */
export function defineOperations<
  Rows extends Record<string, OperationRow<BaseOperation>>,
  Schemas extends Record<ParamName<Rows[keyof Rows]['route']>, TSchema>,
>(rows: Rows, schemas: Schemas) {
  const operations = Object.entries(rows).map(([id, row]) => {
    const [method, path = ''] = row.route.split(' ')
    return [id, { id, method, path, ...paramsOf(path, (name) => (schemas as Record<string, TSchema>)[name]), ...row }]
  })
  return Object.fromEntries(operations) as {
    readonly [Id in keyof Rows]: Rows[Id] & { readonly id: Id } & Routed<Rows[Id]['route'], Schemas>
  }
}
