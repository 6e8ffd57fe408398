import { crc32 } from 'node:zlib'
import { ANTHROPIC_SCHEMA_RULES } from './anthropic-messages.ts'
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
} from './check.ts'
import {
  argumentsText,
  argumentsValue,
  finishOf,
  type IncomingModelRequest,
  type ModelFinish,
  type ModelMessage,
  type ModelProtocol,
  type ModelSpeech,
  type ModelToolCall,
  newId,
  splitIntoPieces,
  tokensOf,
} from './turn.ts'

/** Amazon Bedrock's Converse and ConverseStream. */
export const bedrockConverse: ModelProtocol = {
  name: 'bedrock',
  path: /\/model\/(?<model>[^/]+)\/converse(-stream)?$/,
  isStreaming: (path) => path.endsWith('/converse-stream'),
  read: readRequest,
  whole(speech) {
    const content: object[] = []
    if (speech.reasoning !== undefined)
      content.push({ reasoningContent: { reasoningText: reasoning(speech.reasoning) } })
    if (speech.text !== undefined) content.push({ text: speech.text })
    for (const call of speech.toolCalls ?? []) {
      content.push({ toolUse: { ...toolUse(call), input: argumentsValue(call) ?? call.arguments } })
    }
    return {
      output: { message: { role: 'assistant', content } },
      stopReason: STOP_REASONS[finishOf(speech)],
      usage: usage(speech),
      metrics: { latencyMs: 1 },
    }
  },
  stream(speech) {
    const frames = [toFrame('messageStart', { role: 'assistant' })]
    let contentBlockIndex = 0
    const block = (start: object | null, deltas: object[]) => {
      if (start) frames.push(toFrame('contentBlockStart', { contentBlockIndex, start }))
      frames.push(...deltas.map((delta) => toFrame('contentBlockDelta', { contentBlockIndex, delta })))
      frames.push(toFrame('contentBlockStop', { contentBlockIndex }))
      contentBlockIndex += 1
    }
    if (speech.reasoning !== undefined) {
      const { signature } = reasoning('')
      const deltas = splitIntoPieces(speech.reasoning).map((text) => ({ reasoningContent: { text } }))
      block(null, [...deltas, { reasoningContent: { signature } }])
    }
    if (speech.text !== undefined)
      block(
        null,
        splitIntoPieces(speech.text).map((text) => ({ text })),
      )
    for (const call of speech.toolCalls ?? []) {
      const deltas = splitIntoPieces(argumentsText(call)).map((input) => ({ toolUse: { input } }))
      block({ toolUse: toolUse(call) }, deltas)
    }
    frames.push(toFrame('messageStop', { stopReason: STOP_REASONS[finishOf(speech)] }))
    frames.push(toFrame('metadata', { usage: usage(speech), metrics: { latencyMs: 1 } }))
    return Buffer.concat(frames)
  },
  streamType: 'application/vnd.amazon.eventstream',
  idHeader: 'x-amzn-requestid',
  error: (status, message) => ({
    headers: { 'x-amzn-errortype': ERROR_TYPES[status] ?? 'ValidationException' },
    body: { message },
  }),
  promptBlocked(request) {
    const speech: ModelSpeech = { text: 'Sorry, I cannot answer that.', finishReason: 'content_filter' }
    const body = request.isStreaming
      ? bedrockConverse.stream(speech, request)
      : JSON.stringify(bedrockConverse.whole(speech, request))
    return { status: 200, body }
  },
}

const STOP_REASONS: Record<ModelFinish, string> = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  content_filter: 'guardrail_intervened',
  refusal: 'content_filtered',
  pause: 'malformed_model_output',
  unknown: 'something_new',
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  403: 'AccessDeniedException',
  404: 'ResourceNotFoundException',
  408: 'ModelTimeoutException',
  424: 'ModelErrorException',
  429: 'ThrottlingException',
  500: 'InternalServerException',
  503: 'ServiceUnavailableException',
}

function reasoning(text: string) {
  return { text, signature: 'c2lnbmF0dXJl' }
}

function toolUse(call: ModelToolCall) {
  return { toolUseId: call.id ?? newId('tooluse_'), name: call.name }
}

function usage(speech: ModelSpeech) {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = tokensOf(speech)
  return {
    inputTokens: inputTokens - cacheReadTokens - cacheWriteTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cacheReadInputTokens: cacheReadTokens,
    cacheWriteInputTokens: cacheWriteTokens,
  }
}

/** A message of Amazon's event stream encoding: lengths, a checksum of them, headers, the payload, a checksum of all. */
function toFrame(eventType: string, payload: object): Buffer {
  const headers = Buffer.concat(
    [
      [':event-type', eventType],
      [':content-type', 'application/json'],
      [':message-type', 'event'],
    ].map(([name = '', value = '']) => {
      const head = Buffer.from([name.length, ...Buffer.from(name), 7, 0, value.length])
      return Buffer.concat([head, Buffer.from(value)])
    }),
  )
  const body = Buffer.from(JSON.stringify(payload))
  const frame = Buffer.alloc(12 + headers.length + body.length + 4)
  frame.writeUInt32BE(frame.length, 0)
  frame.writeUInt32BE(headers.length, 4)
  frame.writeUInt32BE(crc32(frame.subarray(0, 8)), 8)
  headers.copy(frame, 12)
  body.copy(frame, 12 + headers.length)
  frame.writeUInt32BE(crc32(frame.subarray(0, frame.length - 4)), frame.length - 4)
  return frame
}

const REQUEST =
  'messages system? inferenceConfig? toolConfig? additionalModelRequestFields? additionalModelResponseFieldPaths? ' +
  'guardrailConfig? promptVariables? requestMetadata? performanceConfig? serviceTier? outputConfig?'
const TOOL_USE_ID = /^[a-zA-Z0-9_-]{1,64}$/

function readRequest({ body, headers, model }: IncomingModelRequest) {
  checkAuthorization(headers)
  const request = readFields(body, 'request', REQUEST)
  const inference = readFields(
    request['inferenceConfig'] ?? {},
    'inferenceConfig',
    'maxTokens? temperature? topP? stopSequences?',
  )
  if (inference['maxTokens'] !== undefined) readInteger(inference['maxTokens'], 'inferenceConfig.maxTokens', 1)
  const isClaude = model.includes('anthropic.')
  if (JSON.stringify(body).includes('"cachePoint"') && !isClaude && !model.includes('nova')) {
    reject('You invoked an unsupported model or your request did not allow prompt caching.', 403)
  }
  const tools = request['toolConfig'] === undefined ? [] : readToolConfig(request['toolConfig'], isClaude)
  const messages = readMessages(request['messages'], isClaude)
  if (tools.length === 0 && messages.some(({ calls, results }) => calls.length + results.length > 0)) {
    reject('The toolConfig field must be defined when using toolUse and toolResult content blocks.')
  }
  const system = request['system'] === undefined ? [] : readList(request['system'], 'system', { min: 0 })
  const instructions = system.flatMap((block, index) => {
    const { text } = readFields(block, `system.${index}`, 'text? cachePoint? guardContent?')
    return text === undefined ? [] : [checkText(text, `system.${index}`)]
  })
  return { instructions: instructions.join('\n'), messages, tools }
}

/** An API key, or a signature of version 4, of which only the form is checked. */
function checkAuthorization(headers: IncomingModelRequest['headers']): void {
  const { authorization = '' } = headers
  if (/^Bearer \S+$/.test(authorization)) return
  const signature =
    /^AWS4-HMAC-SHA256 Credential=[^/]+\/\d{8}\/[a-z0-9-]+\/bedrock\/aws4_request, SignedHeaders=\S*host\S*x-amz-date\S*, Signature=[0-9a-f]{64}$/
  if (!signature.test(authorization) || !headers['x-amz-date']) reject('Missing Authentication Token', 403)
}

function readToolConfig(value: unknown, isClaude: boolean) {
  const { tools } = readFields(value, 'toolConfig', 'tools toolChoice?')
  const read = readList(tools, 'toolConfig.tools').flatMap((tool, index) => {
    const path = `toolConfig.tools.${index}`
    const { toolSpec } = readFields(tool, path, 'toolSpec? cachePoint?')
    if (toolSpec === undefined) return []
    const { name, description, inputSchema } = readFields(
      toolSpec,
      `${path}.toolSpec`,
      'name description? inputSchema strict?',
    )
    const { json } = readFields(inputSchema, `${path}.toolSpec.inputSchema`, 'json')
    return [
      {
        name: readString(name, `${path}.toolSpec.name`, { pattern: /^[a-zA-Z0-9_-]{1,64}$/ }),
        description:
          description === undefined ? '' : readString(description, `${path}.toolSpec.description`, { pattern: /./ }),
        schema: checkToolSchema(
          json,
          `${path}.toolSpec.inputSchema.json`,
          isClaude ? ANTHROPIC_SCHEMA_RULES : { allowsTypeLists: true },
        ),
      },
    ]
  })
  checkUnique(
    read.map(({ name }) => name),
    (name) => `The tool names must be unique: ${name}`,
  )
  return read
}

function checkText(value: unknown, path: string): string {
  const text = readString(value, path)
  if (text.trim() === '') {
    reject(`The text field in the ContentBlock object at ${path} is blank. Add text to the text field, and try again.`)
  }
  return text
}

function readMessages(value: unknown, isClaude: boolean): ModelMessage[] {
  const messages: ModelMessage[] = []
  let unanswered: string[] = []
  for (const [index, item] of readList(value, 'messages').entries()) {
    const { role, content } = readFields(item, `messages.${index}`, 'role content')
    if (role !== 'user' && role !== 'assistant') reject(`messages.${index}.role: must be user or assistant`)
    if (index === 0 && role !== 'user') reject('A conversation must start with a user message.')
    if (messages.at(-1)?.role === role) reject('A conversation must alternate between user and assistant roles.')
    const message: ModelMessage = { role, text: '', calls: [], results: [] }
    const texts: string[] = []
    for (const [at, block] of readList(content, `messages.${index}.content`).entries()) {
      readBlock(block, `messages.${index}.content.${at}`, { message, texts, isClaude })
    }
    const expected = unanswered
    for (const { id } of message.results) {
      if (!expected.includes(id)) {
        reject(
          `The number of toolResult blocks at messages.${index}.content exceeds the number of toolUse blocks of previous turn.`,
        )
      }
      unanswered = unanswered.filter((other) => other !== id)
    }
    if (unanswered.length > 0) {
      reject(`Expected toolResult blocks at messages.${index}.content for the following Ids: ${unanswered.join(', ')}`)
    }
    unanswered = message.calls.map(({ id }) => id)
    checkUnique(unanswered, (id) => `The toolUse blocks at messages.${index}.content contain duplicate Ids: ${id}`)
    message.text = texts.join('\n')
    messages.push(message)
  }
  if (unanswered.length > 0) reject(`Expected toolResult blocks for the following Ids: ${unanswered.join(', ')}`)
  if (messages.at(-1)?.role !== 'user') reject('The conversation must end with a user message.')
  return messages
}

function readBlock(
  block: unknown,
  path: string,
  { message, texts, isClaude }: { message: ModelMessage; texts: string[]; isClaude: boolean },
): void {
  const fields: Fields = readFields(block, path, 'text? toolUse? toolResult? reasoningContent? cachePoint?')
  if (Object.keys(fields).length !== 1) reject(`${path}: exactly one member of the union must be set`)
  const { text, toolUse: call, toolResult, cachePoint } = fields
  if (text !== undefined) texts.push(checkText(text, path))
  if (cachePoint !== undefined) readFields(cachePoint, `${path}.cachePoint`, 'type ttl?')
  if (call !== undefined) {
    if (message.role !== 'assistant') reject(`${path}: toolUse blocks are only allowed in assistant messages`)
    const { toolUseId, name, input } = readFields(call, `${path}.toolUse`, 'toolUseId name input type?')
    message.calls.push({
      id: readString(toolUseId, `${path}.toolUse.toolUseId`, { pattern: TOOL_USE_ID }),
      name: readString(name, `${path}.toolUse.name`, { pattern: /^[a-zA-Z0-9_-]{1,64}$/ }),
      arguments: readObject(input, `${path}.toolUse.input`),
    })
  }
  if (toolResult !== undefined) {
    if (message.role !== 'user') reject(`${path}: toolResult blocks are only allowed in user messages`)
    const { toolUseId, content, status } = readFields(
      toolResult,
      `${path}.toolResult`,
      'toolUseId content status? type?',
    )
    const parts = readList(content, `${path}.toolResult.content`, { min: status === 'error' ? 1 : 0 })
    const result = parts.map((part, at) => {
      const { text: partText, json } = readFields(part, `${path}.toolResult.content.${at}`, 'text? json?')
      if (json !== undefined) return JSON.stringify(json)
      if (isClaude && String(partText).trim() === '')
        reject('messages: text content blocks must contain non-whitespace text')
      return readString(partText, `${path}.toolResult.content.${at}.text`)
    })
    message.results.push({ id: readString(toolUseId, `${path}.toolResult.toolUseId`), text: result.join('\n') })
  }
}
