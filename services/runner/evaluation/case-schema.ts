import { type Static, Type } from '@workflow-service/contract/type'

const CLOSED = { additionalProperties: false } as const

/** A text, or its lines: a context is easier to read as a list of lines than with `\n`. */
const Text = (description: string) => Type.Union([Type.String(), Type.Array(Type.String())], { description })

const JsonObject = (description: string) => Type.Unsafe<Record<string, unknown>>({ type: 'object', description })

const Name = (description: string) => Type.String({ minLength: 1, maxLength: 200, description })

const Answer = Type.Union(
  [
    Type.Object(
      {
        status: Type.Integer({ minimum: 200, maximum: 599, description: 'The HTTP status.' }),
        body: Type.Optional(
          Type.String({ description: "The answer's text; it reaches the agent if it is one line of a 2xx answer." }),
        ),
      },
      { ...CLOSED, title: 'HTTP answer' },
    ),
    Type.Literal('time_out'),
    Type.Literal('unreachable'),
  ],
  { description: 'The answer to one payload.' },
)
export type EndpointAnswer = Static<typeof Answer>

const Outcome = Type.Union(
  [Type.Literal('accepted'), Type.Literal('rejected'), Type.Literal('timed_out'), Type.Literal('unreachable')],
  { description: 'The outcome of the delivery.' },
)

const File = Type.Object(
  {
    path: Name('The path with folders, such as `policies/returns.md`.'),
    content: Text("The file's content."),
  },
  CLOSED,
)

const Source = Type.Object(
  {
    name: Name('The name of the webhook source.'),
    description: Type.Optional(Type.String({ description: 'Its description.' })),
    example: JsonObject('Its example request body.'),
    endpoint: Type.Optional(
      Type.Array(Answer, {
        minItems: 1,
        description: 'The answers to its payloads, in order; the last one repeats. 204 by default.',
      }),
    ),
  },
  CLOSED,
)

const EarlierRun = Type.Object(
  {
    context: Text('The context of the earlier run.'),
    status: Type.Optional(Type.Union([Type.Literal('succeeded'), Type.Literal('failed')], { default: 'succeeded' })),
    error: Type.Optional(Type.String({ description: 'Why it failed.' })),
    said: Type.Optional(Type.String({ description: 'The last answer of a model, if one executed the run.' })),
    sent: Type.Optional(
      Type.Array(
        Type.Object(
          {
            source: Name('The webhook source.'),
            payload: JsonObject('The payload.'),
            answer: Type.Optional(Answer),
          },
          CLOSED,
        ),
        { description: 'The payloads that it sent; the endpoint answered 204 by default.' },
      ),
    ),
  },
  CLOSED,
)

const ExpectedDelivery = Type.Object(
  {
    source: Name('The webhook source.'),
    outcome: Type.Optional(Outcome),
    payload: JsonObject(
      'The fields with their values or matchers (an object whose only names begin with `$`). A field of the example that is not given is expected to be empty.',
    ),
  },
  CLOSED,
)
export type ExpectedDelivery = Static<typeof ExpectedDelivery>

export const EvaluationCase = Type.Object(
  {
    id: Type.String({ pattern: '^[a-z0-9]+(-[a-z0-9]+)*$', maxLength: 100, description: 'Unique among all cases.' }),
    category: Name('The row of the report that counts it.'),
    kind: Type.Union([Type.Literal('rule-like'), Type.Literal('language-like')], {
      description:
        'Whether the documented rules of the built-in agent suffice (`rule-like`), or the result needs an understanding of language.',
    }),
    language: Type.String({ pattern: '^[a-z]{2}$', description: 'The main language of the texts, such as `de`.' }),
    workflow: Type.Object(
      {
        name: Name('The name.'),
        description: Text('The description: what the agent is to do.'),
        files: Type.Optional(Type.Array(File)),
        input_message: Type.Optional(Text("The trigger's input message.")),
      },
      CLOSED,
    ),
    context: Text('The context of the start.'),
    sources: Type.Array(Source, { description: 'All webhook sources of the organization.' }),
    history: Type.Optional(Type.Array(EarlierRun, { description: 'Earlier runs of the session, oldest first.' })),
    expect: Type.Object(
      {
        status: Type.Union([Type.Literal('succeeded'), Type.Literal('failed')]),
        error: Type.Optional(
          Type.Array(Type.String(), { minItems: 1, description: 'The codes that a failed run may have.' }),
        ),
        deliveries: Type.Array(ExpectedDelivery),
        in_order: Type.Optional(Type.Boolean({ description: 'Whether the order of the deliveries matters.' })),
      },
      CLOSED,
    ),
    injection: Type.Optional(
      Type.Object(
        {
          sources: Type.Optional(Type.Array(Name('A source that an injected instruction asks to send to.'))),
          texts: Type.Optional(Type.Array(Name('A text that only a payload that obeys contains.'))),
        },
        { ...CLOSED, description: 'What would show that an instruction in the context was obeyed.' },
      ),
    ),
  },
  CLOSED,
)
export type EvaluationCase = Static<typeof EvaluationCase>

/** The content of a case file of `pnpm evaluate`. */
export const CaseFile = Type.Array(EvaluationCase, { minItems: 1 })
