/**
 * Reads the body of a request from the service: the verification request, or a payload, which is compared with the
 * webhook source's example request body. Check the request's token first. Never throws because of the body; throws a
 * `TypeError` if the example is not an object. Takes time in proportion to the sizes of body and example.
 *
 * `body` is the parsed JSON, its text or its bytes. A payload is returned as received, typed like the example.
 */
export declare function parseWebhook<const Example extends object>(body: unknown, example: Example): Webhook<Example>

/** What a request is. Answer 2xx to a verification without processing it, and 4xx to what is invalid. */
export type Webhook<Example extends object = Record<string, unknown>> =
  | { kind: 'verification'; verification: WebhookVerification }
  | { kind: 'payload'; payload: PayloadOf<Example> }
  | { kind: 'invalid'; problems: PayloadProblem[] }

/** The request that the service sends when the webhook source is saved or tested. It is not workflow data. */
export interface WebhookVerification {
  type: 'service.webhook.verification'
  organization_id: string
  /** Constant for the life of the webhook source. */
  source_id: string
  data: {
    target_url: string
    /** The signing secret as entered; null without one. Do not log it. */
    signing_secret: string | null
    /** The example request body as entered. */
    body_example: Record<string, unknown>
  }
}

/**
 * Reads the body of a request to the webhook of an organization: an event of a run. Check the request first. Never
 * throws. Undefined: it is another notice, or of a type that this version does not know. Answer 2xx to it.
 */
export declare function parseEvent(body: unknown): RunEvent | undefined

/** What happened to one run. The same event may come again: compare `id`, which is `X-Delivery-Id`. */
export interface RunEvent {
  id: string
  type: 'run.failed' | 'run.cancelled' | 'approval.waiting'
  organization_id: string
  created_at: string
  /** A sentence for people. */
  text: string
  data: {
    /** When it happened. */
    at: string
    /** The `id` of the start: `GET /v1/runs/{run_id}` has the rest. */
    run_id: string
    workflow_id: string
    session_id: string
    /** Of `run.failed`. */
    error_code: string | null
    /** Of `approval.waiting`: the payload that waits, and the webhook source that it is for. */
    delivery_id: string | null
    source_id: string | null
  }
}

/** One place at which a body does not follow the example. At most 20 are listed. */
export interface PayloadProblem {
  /** Nested names and positions are joined with a dot, `lines.0.price`; `body` is the whole body. */
  field: string
  /**
   * `missing`, `extra_forbidden`, `dict_type`, `list_type`, `string_type`, `float_type`, `bool_type`, `value_type` or
   * `invalid_json`.
   */
  code: string
  message: string
}

/**
 * The type of the payloads that follow an example: objects with exactly its fields, numbers whole or not. `null`, `[]`
 * and `{}` in the example allow any value, list and fields. In a list of objects, a field that only some have is
 * optional.
 */
export type PayloadOf<Example> = [Example] extends [null | undefined]
  ? unknown
  :
      | WidenedScalar<Example>
      | ([ObjectsIn<Example>] extends [never] ? never : PayloadObject<ObjectsIn<Example>>)
      | ([ListsIn<Example>] extends [never] ? never : PayloadOf<ListsIn<Example>[number]>[])

type WidenedScalar<Value> = Value extends string
  ? string
  : Value extends number
    ? number
    : Value extends boolean
      ? boolean
      : Value extends null
        ? null
        : never

type ListsIn<Value> = Extract<Value, readonly unknown[]>
type ObjectsIn<Value> = Value extends readonly unknown[] ? never : Value extends object ? Value : never
type FieldsOf<Objects> = Objects extends unknown ? keyof Objects : never
type FieldIn<Objects, Name> = Objects extends unknown
  ? Name extends keyof Objects
    ? Exclude<Objects[Name], undefined>
    : never
  : never
type RequiredIn<Objects> = {
  [Name in FieldsOf<Objects>]: [Objects] extends [Record<Name, unknown>] ? Name : never
}[FieldsOf<Objects>]

type PayloadObject<Objects> = [FieldsOf<Objects>] extends [never]
  ? Record<string, unknown>
  : Flat<
      { [Name in RequiredIn<Objects>]: PayloadOf<FieldIn<Objects, Name>> } & {
        [Name in Exclude<FieldsOf<Objects>, RequiredIn<Objects>>]?: PayloadOf<FieldIn<Objects, Name>>
      }
    >

/** Shows an intersection as one object. */
type Flat<Type> = { [Name in keyof Type]: Type[Name] }
