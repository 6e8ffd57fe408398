import {
  checkToolSchema,
  checkUnique,
  type Fields,
  readFields,
  readInteger,
  readList,
  readObject,
  readString,
  reject,
  type SchemaRules,
} from './check.ts'
import {
  argumentsValue,
  finishOf,
  type IncomingModelRequest,
  type ModelFinish,
  type ModelMessage,
  type ModelProtocol,
  type ModelSpeech,
  newId,
  splitIntoPieces,
  toServerSentEvents,
  tokensOf,
} from './turn.ts'

/** The Gemini API's generateContent and streamGenerateContent. */
export const googleGenerateContent: ModelProtocol = {
  name: 'google',
  path: /\/models\/(?<model>[^/:]+):(generateContent|streamGenerateContent\?alt=sse)$/,
  isStreaming: (path) => path.includes(':streamGenerateContent'),
  read: readRequest,
  whole: (speech, request) => toResponse(speech, request, toParts(speech, request), finishReason(speech)),
  stream(speech, request) {
    const parts = toParts(speech, request).flatMap((part): Fields[] =>
      typeof part['text'] === 'string' && part['text'] !== ''
        ? splitIntoPieces(part['text']).map((text) => ({ ...part, text }))
        : [part],
    )
    const chunks: object[] = parts.map((part) => toResponse(speech, request, [part]))
    return toServerSentEvents([...chunks, toResponse(speech, request, [{ text: '' }], finishReason(speech))])
  },
  streamType: 'text/event-stream',
  error(code, message, _code, retryAfterSeconds) {
    const retryInfo = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${retryAfterSeconds}s` }
    const details = retryAfterSeconds === undefined ? {} : { details: [retryInfo] }
    return { body: { error: { code, message, status: STATUSES[code] ?? 'INVALID_ARGUMENT', ...details } } }
  },
  asksForDelayInBody: true,
  promptBlocked({ isStreaming, model }) {
    const body = {
      promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
      usageMetadata: { promptTokenCount: 10, totalTokenCount: 10 },
      modelVersion: model,
    }
    return { status: 200, body: isStreaming ? toServerSentEvents([body as object]) : JSON.stringify(body) }
  },
}

const STATUSES: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

const FINISH_REASONS: Record<ModelFinish, string> = {
  stop: 'STOP',
  tool_calls: 'STOP',
  length: 'MAX_TOKENS',
  content_filter: 'SAFETY',
  refusal: 'PROHIBITED_CONTENT',
  pause: 'OTHER',
  unknown: 'SOMETHING_NEW',
}

/** Arguments are an object here, so a call that is malformed ends the answer instead. */
function isMalformed({ toolCalls = [] }: ModelSpeech): boolean {
  return toolCalls.some((call) => {
    const value = argumentsValue(call)
    return typeof value !== 'object' || value === null || Array.isArray(value)
  })
}

function finishReason(speech: ModelSpeech): string {
  return isMalformed(speech) ? 'MALFORMED_FUNCTION_CALL' : FINISH_REASONS[finishOf(speech)]
}

function toParts(speech: ModelSpeech, { model }: IncomingModelRequest): Fields[] {
  const parts: Fields[] = []
  if (speech.reasoning !== undefined) parts.push({ text: speech.reasoning, thought: true })
  if (speech.text !== undefined) parts.push({ text: speech.text })
  if (isMalformed(speech)) return parts
  for (const [index, call] of (speech.toolCalls ?? []).entries()) {
    const functionCall = {
      ...(call.id === undefined ? {} : { id: call.id }),
      name: call.name,
      args: argumentsValue(call),
    }
    parts.push({ functionCall, ...(index === 0 && isSigning(model) ? { thoughtSignature: 'c2lnbmF0dXJl' } : {}) })
  }
  return parts
}

/** Models whose first function call of an answer has a signature, which they demand back. */
function isSigning(model: string): boolean {
  return /^gemini-[3-9]/.test(model)
}

function toResponse(speech: ModelSpeech, { model }: IncomingModelRequest, parts: Fields[], finish?: string) {
  const { inputTokens, outputTokens, cacheReadTokens, reasoningTokens } = tokensOf(speech)
  // A filtered answer has no content at all.
  const content = finish === 'SAFETY' || finish === 'PROHIBITED_CONTENT' ? {} : { content: { role: 'model', parts } }
  return {
    candidates: [{ ...content, ...(finish === undefined ? {} : { finishReason: finish }), index: 0 }],
    usageMetadata: {
      promptTokenCount: inputTokens,
      candidatesTokenCount: outputTokens - reasoningTokens,
      thoughtsTokenCount: reasoningTokens,
      cachedContentTokenCount: cacheReadTokens,
      totalTokenCount: inputTokens + outputTokens,
    },
    modelVersion: model,
    responseId: newId(''),
  }
}

const REQUEST =
  'contents systemInstruction? tools? toolConfig? generationConfig? safetySettings? cachedContent? serviceTier? store? labels?'
const GENERATION_CONFIG =
  'temperature? topP? topK? maxOutputTokens? stopSequences? seed? candidateCount? responseMimeType? responseSchema? ' +
  'responseJsonSchema? presencePenalty? frequencyPenalty? thinkingConfig? responseModalities? mediaResolution?'

/** The keywords that the reference names for JSON schemas, and the names of parameters. */
const SCHEMA_RULES: SchemaRules = {
  keywords: new Set(
    '$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum anyOf oneOf properties additionalProperties required propertyOrdering'.split(
      ' ',
    ),
  ),
  propertyName: /^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/,
  rejectsEmptyObjects: true,
  requiresType: true,
  allowsTypeLists: true,
  maxDepth: 32,
}

function readRequest({ body, headers, model }: IncomingModelRequest) {
  if (!headers['x-goog-api-key']) reject("Method doesn't allow unregistered callers.", 403)
  const request = readFields(body, 'request', REQUEST)
  const config = readFields(request['generationConfig'] ?? {}, 'generationConfig', GENERATION_CONFIG)
  if (config['maxOutputTokens'] !== undefined) readInteger(config['maxOutputTokens'], 'maxOutputTokens', 1)
  const tools = (request['tools'] === undefined ? [] : readList(request['tools'], 'tools')).flatMap((tool, index) => {
    const { functionDeclarations } = readFields(tool, `tools[${index}]`, 'functionDeclarations')
    return readList(functionDeclarations, `tools[${index}].function_declarations`).map(readDeclaration)
  })
  checkUnique(
    tools.map(({ name }) => name),
    (name) => `Duplicate function declaration found: ${name}`,
  )
  const system = request['systemInstruction']
  const instructions =
    system === undefined
      ? ''
      : readList(readFields(system, 'systemInstruction', 'parts role?')['parts'], 'systemInstruction.parts')
          .map((part, index) => readPartText(part, `systemInstruction.parts[${index}]`))
          .join('\n')
  return { instructions, messages: readContents(request['contents'], model), tools }
}

function readDeclaration(value: unknown, index: number) {
  const path = `function_declarations[${index}]`
  const { name, description, parameters, parametersJsonSchema } = readFields(
    value,
    path,
    'name description parameters? parametersJsonSchema? behavior? response? responseJsonSchema?',
  )
  if (parameters !== undefined && parametersJsonSchema !== undefined)
    reject(`${path}: oneof field 'parameters' is already set`)
  return {
    name: readString(name, `${path}.name`, { pattern: /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/ }),
    description: readString(description, `${path}.description`),
    schema:
      parametersJsonSchema === undefined
        ? parameters === undefined
          ? {}
          : checkToolSchema(parameters, `${path}.parameters`, { ...SCHEMA_RULES, allowsTypeLists: false })
        : checkToolSchema(parametersJsonSchema, `${path}.parameters_json_schema`, SCHEMA_RULES),
  }
}

function readPartText(value: unknown, path: string): string {
  const { text } = readFields(value, path, 'text? thought? thoughtSignature?')
  // An empty text counts as a missing one, as everywhere in protocol buffers.
  if (text === undefined || text === '')
    reject(`${path}.data: required oneof field 'data' must have one initialized field`)
  return readString(text, `${path}.text`)
}

function readContents(value: unknown, model: string): ModelMessage[] {
  const messages: ModelMessage[] = []
  let unanswered: string[] = []
  let lastRole = ''
  for (const [index, item] of readList(value, 'contents').entries()) {
    const { role, parts } = readFields(item, `contents[${index}]`, 'role parts')
    if (role !== 'user' && role !== 'model') reject('Please use a valid role: user, model.')
    const message: ModelMessage = { role: role === 'user' ? 'user' : 'assistant', text: '', calls: [], results: [] }
    const texts: string[] = []
    for (const [at, part] of readList(parts, `contents[${index}].parts`).entries()) {
      const path = `contents[${index}].parts[${at}]`
      const { functionCall, functionResponse } = part as Fields
      if (functionCall !== undefined) {
        if (message.calls.length === 0 && isSigning(model) && !(part as Fields)['thoughtSignature']) {
          reject(`Function call is missing a thought_signature in functionCall parts. (${path})`)
        }
        message.calls.push(readCall(part, path, `call_${index}_${at}`))
      } else if (functionResponse === undefined) {
        texts.push(readPartText(part, path))
      } else {
        const { functionResponse: response } = readFields(part, path, 'functionResponse')
        const { name, response: result } = readFields(response, `${path}.function_response`, 'id? name response')
        message.results.push({
          id: readString(name, `${path}.function_response.name`),
          text: JSON.stringify(readObject(result, `${path}.function_response.response`)),
        })
      }
    }
    if (message.calls.length > 0 && (role !== 'model' || lastRole !== 'user')) {
      reject(
        'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
      )
    }
    if (message.results.length > 0 && unanswered.length === 0) {
      reject('Please ensure that function response turn comes immediately after a function call turn.')
    }
    const answered = message.results.map(({ id }) => id)
    if (unanswered.toSorted().join('\n') !== answered.toSorted().join('\n')) {
      reject(
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      )
    }
    unanswered = message.calls.map(({ name }) => name)
    lastRole = role
    message.text = texts.join('\n')
    messages.push(message)
  }
  if (unanswered.length > 0) reject('Please ensure that function call turn is followed by a function response turn.')
  if (messages[0]?.role !== 'user') reject('Please ensure that the first content has the role user.')
  return messages
}

function readCall(part: unknown, path: string, fallbackId: string) {
  const { functionCall } = readFields(part, path, 'functionCall thought? thoughtSignature?')
  const { id, name, args } = readFields(functionCall, `${path}.function_call`, 'id? name args?')
  return {
    id: id === undefined ? fallbackId : readString(id, `${path}.function_call.id`),
    name: readString(name, `${path}.function_call.name`),
    arguments: readObject(args ?? {}, `${path}.function_call.args`),
  }
}
