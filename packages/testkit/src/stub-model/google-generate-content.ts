import { isJsonObject } from '@workflow-service/contract'
import { reject } from './check-request.ts'
import * as turn from './turn.ts'

/** The Gemini API's generateContent and streamGenerateContent. */
export const googleGenerateContent: turn.ModelProtocol = {
  name: 'google',
  path: /\/models\/(?<model>[^/:]+):(generateContent|streamGenerateContent\?alt=sse)$/,
  isStreaming: (path) => path.includes(':streamGenerateContent'),
  keyHeaders: ['x-goog-api-key'],
  resultsBy: 'name',
  read({ body, model }) {
    const { systemInstruction, contents, tools = [] } = body as unknown as Request
    const system = { role: 'system', parts: systemInstruction?.parts ?? [] }
    return {
      messages: [system, ...contents].map(({ role, parts }) => {
        const firstCall = parts.find(({ functionCall }) => functionCall)
        if (firstCall && isSigning(model) && !firstCall.thoughtSignature) {
          reject('Function call is missing a thought_signature in functionCall parts.')
        }
        return { role: role === 'model' ? 'assistant' : role, parts: parts.flatMap(readPart) }
      }),
      tools: tools.flatMap(({ functionDeclarations }) =>
        functionDeclarations.map((each) => ({ ...each, schema: each.parametersJsonSchema ?? each.parameters })),
      ),
    }
  },
  whole: (speech, request) => toResponse(speech, request, toParts(speech, request), finishReason(speech)),
  stream(speech, request) {
    const parts = toParts(speech, request).flatMap((part): Part[] =>
      part.text ? turn.splitIntoPieces(part.text).map((text) => ({ ...part, text })) : [part],
    )
    return [
      ...parts.map((part) => toResponse(speech, request, [part])),
      toResponse(speech, request, [{ text: '' }], finishReason(speech)),
    ]
  },
  error: (code, message) => ({ error: { code, message, status: 'UNKNOWN' } }),
  promptBlocked({ isStreaming }) {
    const answer = { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }
    const body = isStreaming ? turn.toServerSentEvents([answer]) : JSON.stringify(answer)
    return { failure: 'status', status: 200, body }
  },
}

interface Request {
  readonly systemInstruction?: { parts: Part[] }
  readonly contents: { role: string; parts: Part[] }[]
  readonly tools?: {
    functionDeclarations: { name: string; description?: string; parameters?: unknown; parametersJsonSchema?: unknown }[]
  }[]
}

interface Part {
  readonly text?: string
  readonly thought?: true
  readonly thoughtSignature?: string
  readonly inlineData?: { mimeType: string; data: string }
  readonly functionCall?: { id?: string; name: string; args?: unknown }
  readonly functionResponse?: { name: string; response: unknown }
}

function readPart({ text = '', thoughtSignature, inlineData, functionCall, functionResponse }: Part): turn.ReadPart[] {
  if (inlineData) return [{ file: `${inlineData.mimeType};${inlineData.data}` }]
  if (functionResponse) {
    return [{ result: { id: functionResponse.name, text: JSON.stringify(functionResponse.response) } }]
  }
  // The last part of a streamed answer may have a signature alone, which goes back as it came.
  if (!functionCall) return text === '' && thoughtSignature ? [] : [{ text }]
  const { id = turn.newId('call_'), name, args = {} } = functionCall
  return [{ call: { id, name, arguments: args as Record<string, unknown> } }]
}

/** Models whose first function call of an answer has a signature, which they demand back. */
function isSigning(model: string): boolean {
  return /^gemini-[3-9]/.test(model)
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
  return turn.partsOf(speech).some((part) => part.kind === 'call' && !isJsonObject(part.value))
}

function finishReason(speech: turn.ModelSpeech): string {
  return isMalformed(speech) ? 'MALFORMED_FUNCTION_CALL' : FINISH_REASONS[turn.finishOf(speech)]
}

function toParts(speech: turn.ModelSpeech, { model }: turn.IncomingModelRequest): Part[] {
  const parts = turn.partsOf(speech)
  const firstCall = parts.find(({ kind }) => kind === 'call')
  return parts.flatMap((part): Part[] => {
    if (part.kind !== 'call') return [{ text: part.text, ...(part.kind === 'reasoning' ? { thought: true } : {}) }]
    if (isMalformed(speech)) return []
    const signature = part === firstCall && isSigning(model) ? { thoughtSignature: 'c2lnbmF0dXJl' } : {}
    return [{ functionCall: { id: part.id, name: part.name, args: part.value }, ...signature }]
  })
}

function toResponse(speech: turn.ModelSpeech, { model }: turn.IncomingModelRequest, parts: Part[], finish?: string) {
  const { inputTokens, outputTokens, cacheReadTokens, reasoningTokens } = turn.tokensOf(speech)
  // A filtered answer has no content at all.
  const isFiltered = finish === 'SAFETY' || finish === 'PROHIBITED_CONTENT'
  return {
    candidates: [{ ...(isFiltered ? {} : { content: { role: 'model', parts } }), finishReason: finish, index: 0 }],
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
