import { crc32 } from 'node:zlib'
import { ANTHROPIC_SCHEMA_RULES } from './anthropic-messages.ts'
import * as check from './check.ts'
import { addFile, addText, checkMessages, newMessage } from './conversation.ts'
import * as turn from './turn.ts'

/** An event of a stream: one entry, from the event's type to its payload. */
type StreamEvent = Readonly<Record<string, object>>

/** Amazon Bedrock's Converse and ConverseStream. */
export const bedrockConverse: turn.ModelProtocol = {
  name: 'bedrock',
  path: /\/model\/(?<model>[^/]+)\/converse(-stream)?$/,
  isStreaming: (path) => path.endsWith('/converse-stream'),
  read: readRequest,
  whole: (speech) => ({
    output: { message: { role: 'assistant', content: turn.partsOf(speech).map((part) => toBlock(part).whole) } },
    stopReason: STOP_REASONS[turn.finishOf(speech)],
    usage: usage(speech),
    metrics: { latencyMs: 1 },
  }),
  stream: (speech): StreamEvent[] => [
    { messageStart: { role: 'assistant' } },
    ...turn.partsOf(speech).flatMap((part, contentBlockIndex): StreamEvent[] => {
      const { start, deltas } = toBlock(part)
      return [
        ...(start ? [{ contentBlockStart: { contentBlockIndex, start } }] : []),
        ...deltas.map((delta) => ({ contentBlockDelta: { contentBlockIndex, delta } })),
        { contentBlockStop: { contentBlockIndex } },
      ]
    }),
    { messageStop: { stopReason: STOP_REASONS[turn.finishOf(speech)] } },
    { metadata: { usage: usage(speech), metrics: { latencyMs: 1 } } },
  ],
  encoding: {
    type: 'application/vnd.amazon.eventstream',
    encode: (events) => Buffer.concat(events.flatMap((event) => Object.entries(event).map(toFrame))),
  },
  idHeader: 'x-amzn-requestid',
  error: (_status, message) => ({ message }),
  errorHeaders: (status) => ({ 'x-amzn-errortype': ERROR_TYPES[status] ?? 'ValidationException' }),
  promptBlocked: () => ({ speech: { text: 'Sorry, I cannot answer that.', finishReason: 'content_filter' } }),
}

const STOP_REASONS: Record<turn.ModelFinish, string> = {
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

/**
 * A block of an answer: whole, as a stream starts it (only calls of tools have a start), and the pieces that a stream
 * adds.
 */
function toBlock(part: turn.SpeechPart): { whole: object; start?: object; deltas: object[] } {
  const pieces = turn.splitIntoPieces(part.text)
  if (part.kind === 'text') return { whole: { text: part.text }, deltas: pieces.map((text) => ({ text })) }
  if (part.kind === 'reasoning') {
    const signature = 'c2lnbmF0dXJl'
    const deltas = [...pieces.map((text) => ({ text })), { signature }]
    return {
      whole: { reasoningContent: { reasoningText: { text: part.text, signature } } },
      deltas: deltas.map((reasoningContent) => ({ reasoningContent })),
    }
  }
  const toolUse = { toolUseId: part.id ?? turn.newId('tooluse_'), name: part.name }
  return {
    whole: { toolUse: { ...toolUse, input: part.value ?? part.text } },
    start: { toolUse },
    deltas: pieces.map((input) => ({ toolUse: { input } })),
  }
}

function usage(speech: turn.ModelSpeech) {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = turn.tokensOf(speech)
  return {
    inputTokens: inputTokens - cacheReadTokens - cacheWriteTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cacheReadInputTokens: cacheReadTokens,
    cacheWriteInputTokens: cacheWriteTokens,
  }
}

/**
 * A message of Amazon's event stream encoding: lengths, a checksum of them, headers, the payload, a checksum of all.
 */
function toFrame([eventType, payload]: [string, unknown]): Buffer {
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
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/

function readRequest({ body, headers, model }: turn.IncomingModelRequest) {
  checkAuthorization(headers)
  const request = check.readFields(body, 'request', REQUEST)
  const inferenceNames = 'maxTokens? temperature? topP? stopSequences?'
  const { maxTokens } = check.readFields(request['inferenceConfig'] ?? {}, 'inferenceConfig', inferenceNames)
  check.checkInteger(maxTokens, 'inferenceConfig.maxTokens', 1)
  const isClaude = model.includes('anthropic.')
  if (JSON.stringify(body).includes('"cachePoint"') && !isClaude && !model.includes('nova')) {
    check.reject('You invoked an unsupported model or your request did not allow prompt caching.', 403)
  }
  const tools = request['toolConfig'] === undefined ? [] : readToolConfig(request['toolConfig'], isClaude)
  const messages = readMessages(request['messages'], isClaude)
  if (tools.length === 0 && messages.some(({ calls, results }) => calls.length + results.length > 0)) {
    check.reject('The toolConfig field must be defined when using toolUse and toolResult content blocks.')
  }
  const instructions = check.readOptionalList(request['system'], 'system', { min: 0 }).flatMap((block, index) => {
    const { text } = check.readFields(block, `system.${index}`, 'text? cachePoint? guardContent?')
    return text === undefined ? [] : [checkText(text, `system.${index}`)]
  })
  return { instructions: instructions.join('\n'), messages, tools }
}

/** An API key, or a signature of version 4, of which only the form is checked. */
function checkAuthorization(headers: turn.IncomingModelRequest['headers']): void {
  const { authorization = '' } = headers
  if (/^Bearer \S+$/.test(authorization)) return
  const signature =
    /^AWS4-HMAC-SHA256 Credential=[^/]+\/\d{8}\/[a-z0-9-]+\/bedrock\/aws4_request, SignedHeaders=\S*host\S*x-amz-date\S*, Signature=[0-9a-f]{64}$/
  if (!signature.test(authorization) || !headers['x-amz-date']) check.reject('Missing Authentication Token', 403)
}

function readToolConfig(value: unknown, isClaude: boolean): turn.ModelToolDefinition[] {
  const { tools } = check.readFields(value, 'toolConfig', 'tools toolChoice?')
  const rules = { name: TOOL_NAME, schema: isClaude ? ANTHROPIC_SCHEMA_RULES : { allowsTypeLists: true } }
  const read = check.readList(tools, 'toolConfig.tools').flatMap((tool, index) => {
    const path = `toolConfig.tools.${index}.toolSpec`
    const { toolSpec } = check.readFields(tool, path, 'toolSpec? cachePoint?')
    if (toolSpec === undefined) return []
    const { name, description, inputSchema } = check.readFields(toolSpec, path, 'name description? inputSchema strict?')
    if (description !== undefined) check.readString(description, `${path}.description`, { pattern: /./ })
    const { json: schema } = check.readFields(inputSchema, `${path}.inputSchema`, 'json')
    return [check.readTool({ name, description, schema }, path, rules)]
  })
  return check.checkToolNames(read)
}

function checkText(value: unknown, path: string): string {
  const text = check.readString(value, path)
  if (text.trim() === '') {
    check.reject(
      `The text field in the ContentBlock object at ${path} is blank. Add text to the text field, and try again.`,
    )
  }
  return text
}

function readMessages(value: unknown, isClaude: boolean): turn.ModelMessage[] {
  const messages = check.readList(value, 'messages').map((item, index) => {
    const path = `messages.${index}`
    const { role, content } = check.readFields(item, path, 'role content')
    const message = newMessage(role, path)
    for (const [at, block] of check.readList(content, `${path}.content`).entries()) {
      readBlock(block, `${path}.content.${at}`, message, isClaude)
    }
    return message
  })
  return checkMessages(messages, { startsWithUser: true, alternates: true, endsWithUser: true })
}

function readBlock(block: unknown, path: string, message: turn.ModelMessage, isClaude: boolean): void {
  const fields = check.readFields(
    block,
    path,
    'text? toolUse? toolResult? reasoningContent? cachePoint? image? document?',
  )
  if (Object.keys(fields).length !== 1) check.reject(`${path}: exactly one member of the union must be set`)
  const { text, toolUse, toolResult, cachePoint, image, document } = fields
  if (image !== undefined) {
    const { format, source } = check.readFields(image, `${path}.image`, 'format source')
    addFile(message, `image/${String(format)}`, check.readFields(source, path, 'bytes')['bytes'], path)
  }
  if (document !== undefined) {
    const { format, name, source } = check.readFields(document, `${path}.document`, 'format name source citations?')
    check.readString(name, `${path}.document.name`, { pattern: /^[a-zA-Z0-9()[\] -]{1,200}$/ })
    addFile(message, `application/${String(format)}`, check.readFields(source, path, 'bytes')['bytes'], path)
  }
  if (text !== undefined) addText(message, checkText(text, path))
  if (cachePoint !== undefined) check.readFields(cachePoint, `${path}.cachePoint`, 'type ttl?')
  if (toolUse !== undefined) {
    const { toolUseId, name, input } = check.readFields(toolUse, `${path}.toolUse`, 'toolUseId name input type?')
    message.calls.push({
      id: check.readString(toolUseId, `${path}.toolUse.toolUseId`, { pattern: TOOL_NAME }),
      name: check.readString(name, `${path}.toolUse.name`, { pattern: TOOL_NAME }),
      arguments: check.readObject(input, `${path}.toolUse.input`),
    })
  }
  if (toolResult !== undefined) message.results.push(readToolResult(toolResult, `${path}.toolResult`, isClaude))
}

function readToolResult(value: unknown, path: string, isClaude: boolean) {
  const { toolUseId, content, status } = check.readFields(value, path, 'toolUseId content status? type?')
  const parts = check.readList(content, `${path}.content`, { min: status === 'error' ? 1 : 0 }).map((part, at) => {
    const { text, json } = check.readFields(part, `${path}.content.${at}`, 'text? json?')
    if (json !== undefined) return JSON.stringify(json)
    if (isClaude && String(text).trim() === '') {
      check.reject('messages: text content blocks must contain non-whitespace text')
    }
    return check.readString(text, `${path}.content.${at}.text`)
  })
  return { id: check.readString(toolUseId, `${path}.toolUseId`), text: parts.join('\n') }
}
