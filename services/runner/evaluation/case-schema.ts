import { type Static, Type } from '@workflow-service/contract/type'

const CLOSED = { additionalProperties: false } as const

/** A text, or its lines: a context is easier to read as a list of lines than with `\n`. */
const Text = Type.Union([Type.String(), Type.Array(Type.String())])

const Name = Type.String({ minLength: 1, maxLength: 200 })

const JsonObject = Type.Unsafe<Record<string, unknown>>({ type: 'object' })

/** The answer to a payload. Its body reaches the agent if it is one line of a 2xx answer. */
const Answer = Type.Union([
  Type.Object({ status: Type.Integer({ minimum: 200, maximum: 599 }), body: Type.Optional(Type.String()) }, CLOSED),
  Type.Literal('time_out'),
  Type.Literal('unreachable'),
])
export type EndpointAnswer = Static<typeof Answer>

const Status = Type.Union([Type.Literal('succeeded'), Type.Literal('failed')])

const Source = Type.Object(
  {
    name: Name,
    description: Type.Optional(Type.String()),
    example: JsonObject,
    /** The answers to its payloads, in order; the last one repeats. 204 by default. */
    endpoint: Type.Optional(Type.Array(Answer, { minItems: 1 })),
  },
  CLOSED,
)

const EarlierRun = Type.Object(
  {
    context: Text,
    status: Type.Optional(Status),
    error: Type.Optional(Type.String()),
    /** The last answer of a model, if one executed the run. */
    said: Type.Optional(Type.String()),
    sent: Type.Optional(
      Type.Array(Type.Object({ source: Name, payload: JsonObject, answer: Type.Optional(Answer) }, CLOSED)),
    ),
  },
  CLOSED,
)

/** An object of a payload with names that begin with `$` (`score-run.ts`). */
export const Matcher = Type.Union([
  Type.Object({ $contains: Type.Array(Type.String(), { minItems: 1 }) }, CLOSED),
  Type.Object({ $any: Type.Unknown() }, CLOSED),
])

const ExpectedDelivery = Type.Object(
  {
    source: Name,
    outcome: Type.Optional(Type.Unsafe<string>({ enum: ['accepted', 'rejected', 'timed_out', 'unreachable'] })),
    /** The fields with their values or matchers (`score-run.ts`). A field that is not given is expected to be empty. */
    payload: JsonObject,
  },
  CLOSED,
)

const EvaluationCase = Type.Object(
  {
    id: Type.String({ pattern: '^[a-z0-9]+(-[a-z0-9]+)*$', maxLength: 100 }),
    /** Whether the rule of the built-in agent suffices, or the result needs a reader. */
    kind: Type.Union([Type.Literal('rule-like'), Type.Literal('language-like')]),
    workflow: Type.Object(
      {
        name: Name,
        description: Text,
        /** Paths have folders, such as `policies/returns.md`. */
        files: Type.Optional(Type.Array(Type.Object({ path: Name, content: Text }, CLOSED))),
        input_message: Type.Optional(Text),
      },
      CLOSED,
    ),
    context: Text,
    sources: Type.Array(Source),
    /** Earlier runs of the session, oldest first. */
    history: Type.Optional(Type.Array(EarlierRun)),
    expect: Type.Object(
      {
        status: Status,
        /** The codes that a failed run may have. */
        error: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
        deliveries: Type.Array(ExpectedDelivery),
        in_order: Type.Optional(Type.Boolean()),
      },
      CLOSED,
    ),
    /** What would show that an instruction in the context was obeyed: a source, or a text in a payload. */
    injection: Type.Optional(
      Type.Object({ sources: Type.Optional(Type.Array(Name)), texts: Type.Optional(Type.Array(Name)) }, CLOSED),
    ),
  },
  CLOSED,
)
export type EvaluationCase = Static<typeof EvaluationCase>

/** The content of a case file of `pnpm evaluate`. */
export const CaseFile = Type.Array(EvaluationCase, { minItems: 1 })
