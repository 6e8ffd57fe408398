import * as check from './check.ts'
import { addFile, addText, checkMessages, newMessage } from './conversation.ts'
import * as turn from './turn.ts'

/** The Gemini API's generateContent and streamGenerateContent. */
export const googleGenerateContent: turn.ModelProtocol = {
  name: 'google',
  path: /\/models\/(?<model>[^/:]+):(generateContent|streamGenerateContent\?alt=sse)$/,
  isStreaming: (path) => path.includes(':streamGenerateContent'),
  read: readRequest,
  whole: (speech, request) => toResponse(speech, request, toParts(speech, request), finishReason(speech)),
  stream(speech, request) {
    const parts = toParts(speech, request).flatMap((part): check.Fields[] =>
      typeof part['text'] === 'string' && part['text'] !== ''
        ? turn.splitIntoPieces(part['text']).map((text) => ({ ...part, text }))
        : [part],
    )
    return [
      ...parts.map((part) => toResponse(speech, request, [part])),
      toResponse(speech, request, [{ text: '' }], finishReason(speech)),
    ]
  },
  error(code, message, _code, retryAfterSeconds) {
    const retryInfo = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${retryAfterSeconds}s` }
    const details = retryAfterSeconds === undefined ? {} : { details: [retryInfo] }
    return { error: { code, message, status: STATUSES[code] ?? 'INVALID_ARGUMENT', ...details } }
  },
  asksForDelayInBody: true,
  promptBlocked: ({ model }) => ({
    status: 200,
    body: {
      promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
      usageMetadata: { promptTokenCount: 10, totalTokenCount: 10 },
      modelVersion: model,
    },
  }),
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

const FINISH_REASONS: Record<turn.ModelFinish, string> = {
  stop: 'STOP',
  tool_calls: 'STOP',
  length: 'MAX_TOKENS',
  content_filter: 'SAFETY',
  refusal: 'PROHIBITED_CONTENT',
  pause: 'OTHER',
  unknown: 'SOMETHING_NEW',
}

/** Arguments are an object here, so a call that is malformed ends the answer instead. */
function isMalformed(speech: turn.ModelSpeech): boolean {
  return turn
    .partsOf(speech)
    .some(
      (part) =>
        part.kind === 'call' && (typeof part.value !== 'object' || part.value === null || Array.isArray(part.value)),
    )
}

function finishReason(speech: turn.ModelSpeech): string {
  return isMalformed(speech) ? 'MALFORMED_FUNCTION_CALL' : FINISH_REASONS[turn.finishOf(speech)]
}

function toParts(speech: turn.ModelSpeech, { model }: turn.IncomingModelRequest): check.Fields[] {
  const parts = turn.partsOf(speech)
  const firstCall = parts.find(({ kind }) => kind === 'call')
  return parts.flatMap((part): check.Fields[] => {
    if (part.kind !== 'call') return [{ text: part.text, ...(part.kind === 'reasoning' ? { thought: true } : {}) }]
    if (isMalformed(speech)) return []
    const id = part.id === undefined ? {} : { id: part.id }
    const signature = part === firstCall && isSigning(model) ? { thoughtSignature: 'c2lnbmF0dXJl' } : {}
    return [{ functionCall: { ...id, name: part.name, args: part.value }, ...signature }]
  })
}

/** Models whose first function call of an answer has a signature, which they demand back. */
function isSigning(model: string): boolean {
  return /^gemini-[3-9]/.test(model)
}

function toResponse(
  speech: turn.ModelSpeech,
  { model }: turn.IncomingModelRequest,
  parts: check.Fields[],
  finish?: string,
) {
  const { inputTokens, outputTokens, cacheReadTokens, reasoningTokens } = turn.tokensOf(speech)
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
    responseId: turn.newId(''),
  }
}

const REQUEST =
  'contents systemInstruction? tools? toolConfig? generationConfig? safetySettings? cachedContent? serviceTier? store? labels?'
const GENERATION_CONFIG =
  'temperature? topP? topK? maxOutputTokens? stopSequences? seed? candidateCount? responseMimeType? responseSchema? ' +
  'responseJsonSchema? presencePenalty? frequencyPenalty? thinkingConfig? responseModalities? mediaResolution?'
const DECLARATION = 'name description parameters? parametersJsonSchema? behavior? response? responseJsonSchema?'
/** The keywords that the reference names for JSON schemas. */
const SCHEMA_KEYWORDS =
  '$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum anyOf oneOf ' +
  'properties additionalProperties required propertyOrdering'

/** The rules of JSON schemas, and of the names of parameters. */
const SCHEMA_RULES: check.SchemaRules = {
  keywords: new Set(SCHEMA_KEYWORDS.split(' ')),
  propertyName: /^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/,
  rejectsEmptyObjects: true,
  requiresType: true,
  allowsTypeLists: true,
  maxDepth: 32,
}

function readRequest({ body, headers, model }: turn.IncomingModelRequest) {
  if (!headers['x-goog-api-key']) check.reject("Method doesn't allow unregistered callers.", 403)
  const request = check.readFields(body, 'request', REQUEST)
  const { maxOutputTokens } = check.readFields(request['generationConfig'] ?? {}, 'generationConfig', GENERATION_CONFIG)
  check.checkInteger(maxOutputTokens, 'maxOutputTokens', 1)
  const tools = check.readOptionalList(request['tools'], 'tools').flatMap((tool, index) => {
    const { functionDeclarations } = check.readFields(tool, `tools[${index}]`, 'functionDeclarations')
    return check.readList(functionDeclarations, `tools[${index}].function_declarations`).map(readDeclaration)
  })
  const { systemInstruction: system } = request
  const texts =
    system === undefined
      ? []
      : check.readList(check.readFields(system, 'systemInstruction', 'parts role?')['parts'], 'systemInstruction.parts')
  const instructions = texts.map((part, index) => readPartText(part, `systemInstruction.parts[${index}]`)).join('\n')
  return { instructions, messages: readContents(request['contents'], model), tools: check.checkToolNames(tools) }
}

function readDeclaration(value: unknown, index: number) {
  const path = `function_declarations[${index}]`
  const { name, description, parameters, parametersJsonSchema } = check.readFields(value, path, DECLARATION)
  if (parameters !== undefined && parametersJsonSchema !== undefined) {
    check.reject(`${path}: oneof field 'parameters' is already set`)
  }
  const schema = parametersJsonSchema ?? parameters
  const rules = {
    name: /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/,
    schema: { ...SCHEMA_RULES, allowsTypeLists: parametersJsonSchema !== undefined },
  }
  if (schema !== undefined) return check.readTool({ name, description, schema }, path, rules)
  // A function without parameters.
  return {
    ...check.readTool({ name, description, schema: { type: 'object' } }, path, { ...rules, schema: {} }),
    schema: {},
  }
}

function readPartText(value: unknown, path: string): string {
  const { text } = check.readFields(value, path, 'text? thought? thoughtSignature?')
  // An empty text counts as a missing one, as everywhere in protocol buffers.
  if (text === undefined || text === '') {
    check.reject(`${path}.data: required oneof field 'data' must have one initialized field`)
  }
  return check.readString(text, `${path}.text`)
}

function readContents(value: unknown, model: string): turn.ModelMessage[] {
  const messages = check.readList(value, 'contents').map((item, index) => {
    const { role, parts } = check.readFields(item, `contents[${index}]`, 'role parts')
    if (role !== 'user' && role !== 'model') check.reject('Please use a valid role: user, model.')
    const message = newMessage(role === 'user' ? 'user' : 'assistant', `contents[${index}]`)
    for (const [at, part] of check.readList(parts, `contents[${index}].parts`).entries()) {
      readPart(part, `contents[${index}].parts[${at}]`, message, { fallbackId: `call_${index}_${at}`, model })
    }
    return message
  })
  for (const [index, { calls }] of messages.entries()) {
    if (calls.length > 0 && messages[index - 1]?.role !== 'user') {
      check.reject(
        'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
      )
    }
  }
  return checkMessages(messages, { startsWithUser: true, resultsBy: 'name' })
}

function readPart(
  part: unknown,
  path: string,
  message: turn.ModelMessage,
  { fallbackId, model }: { fallbackId: string; model: string },
): void {
  const { functionCall, functionResponse, thoughtSignature, inlineData } = part as check.Fields
  if (inlineData !== undefined) {
    check.readFields(part, path, 'inlineData')
    const { mimeType, data } = check.readFields(inlineData, `${path}.inline_data`, 'mimeType data')
    return addFile(message, String(mimeType), data, path)
  }
  if (functionCall !== undefined) {
    if (message.calls.length === 0 && isSigning(model) && !thoughtSignature) {
      check.reject(`Function call is missing a thought_signature in functionCall parts. (${path})`)
    }
    check.readFields(part, path, 'functionCall thought? thoughtSignature?')
    const { id = fallbackId, name, args } = check.readFields(functionCall, `${path}.function_call`, 'id? name args?')
    message.calls.push({
      id: check.readString(id, `${path}.function_call.id`),
      name: check.readString(name, `${path}.function_call.name`),
      arguments: check.readObject(args ?? {}, `${path}.function_call.args`),
    })
  } else if (functionResponse === undefined) {
    addText(message, readPartText(part, path))
  } else {
    check.readFields(part, path, 'functionResponse')
    const { name, response } = check.readFields(functionResponse, `${path}.function_response`, 'id? name response')
    message.results.push({
      id: check.readString(name, `${path}.function_response.name`),
      text: JSON.stringify(check.readObject(response, `${path}.function_response.response`)),
    })
  }
}
