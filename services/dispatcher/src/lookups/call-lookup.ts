import {
  LOOKUP_ANSWER_MAX_BYTES,
  LOOKUP_DEADLINE_MS,
  type LookupCallOut,
  type LookupOut,
} from '@workflow-service/contract'
import { serviceUnavailable } from '@workflow-service/service-kit'
import { createRedactor } from '../deliveries/redact.ts'
import { sendTraced } from '../deliveries/send-signed-request.ts'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { isCompressed, readLines } from '../outbound/answer-text.ts'
import { type AnsweredBody, toSentence } from '../outbound/outbound-result.ts'
import { LookupArgumentsError, toLookupUrl } from './lookup-url.ts'
import { type LookupAnswer, type LookupCall, notAnswered, type SendLookup } from './lookup-answer.ts'
import { callMcpTool } from './mcp-client.ts'

/**
 * Calls a tool of a look-up (contract README, "Look-ups"). What goes wrong at the other side is an answer that is not
 * `ok`, whose text the model reads.
 * @throws ApiError 503 if this process lacks something; nothing was sent then.
 */
export async function callLookup(ctx: DispatcherContext, call: LookupCall): Promise<LookupCallOut> {
  const { lookup, secret } = call
  const startedMs = performance.now()
  try {
    const send = lookupSender(ctx, call)
    const { content, ...answer } = await (lookup.kind === 'http' ? callHttp(send, call) : callMcpTool(send, call))
    const text = typeof content === 'string' ? content : (readLines(content, LOOKUP_ANSWER_MAX_BYTES) ?? '')
    const redact = createRedactor([secret])
    return {
      ok: answer.ok,
      status: answer.status,
      text: redact(text),
      bytes: answer.bytes,
      is_cut_off: answer.isCutOff,
      duration_ms: Math.round(performance.now() - startedMs),
    }
  } catch (error) {
    if (!(error instanceof LookupArgumentsError)) throw error
    return { ok: false, status: null, text: error.message, bytes: 0, is_cut_off: false, duration_ms: 0 }
  }
}

/** The time for the end of an MCP session, for which the answer to a call waits, also one that has used up its time. */
const END_DEADLINE_MS = 1_000

/** Makes the requests of one call, which have `LOOKUP_DEADLINE_MS` together, but for the end of its session. */
export function lookupSender(
  ctx: Pick<DispatcherContext, 'sendRequest' | 'tracing' | 'logger'>,
  {
    lookup: { id, header_name: headerName },
    secret,
    requestId,
    trace,
  }: Pick<LookupCall, 'secret' | 'requestId' | 'trace'> & {
    readonly lookup: Pick<LookupOut, 'id' | 'header_name'>
  },
): SendLookup {
  const deadline = performance.now() + LOOKUP_DEADLINE_MS
  const secretHeader = headerName !== null && secret !== null ? { [headerName]: secret } : {}
  return async ({ method = 'GET', headers, ...request }) => {
    const result = await sendTraced(
      ctx,
      {
        ...request,
        method,
        headers: { ...headers, ...secretHeader },
        deadlineMs: method === 'DELETE' ? END_DEADLINE_MS : Math.max(1, deadline - performance.now()),
      },
      { requestId, trace, spanAttributes: { 'workflow_service.lookup.id': id } },
    )
    if (result.kind === 'unavailable') throw serviceUnavailable(`${toSentence(result.detail)} Nothing was sent.`)
    return result
  }
}

async function callHttp(send: SendLookup, { lookup, tool, args }: LookupCall): Promise<LookupAnswer> {
  const result = await send({
    url: toLookupUrl(lookup.url, tool, args),
    headers: { Accept: 'application/json, text/*;q=0.9' },
    read: { maxBytes: LOOKUP_ANSWER_MAX_BYTES },
  })
  if (result.kind !== 'answered') return notAnswered(toSentence(result.detail))
  const { status, location, body } = result
  if (status >= 300 && status <= 399) {
    const target = location === null ? '' : ` to ${location}`
    return notAnswered(`It answered ${status}, a redirect${target}, which is not followed.`, status)
  }
  if (!body) return notAnswered('The answer did not arrive in time.', status)
  const { bytes, isCutOff, headers } = body
  const why = whyUnreadable(headers)
  if (why !== undefined) return notAnswered(why, status)
  return { ok: status >= 200 && status <= 299, status, content: bytes, bytes: bytes.length, isCutOff }
}

/** Content types that are text: `application/problem+json`, too. */
const TEXT =
  /^(?:text\/|application\/(?:[\w.+-]+\+)?(?:json|xml|yaml|x-yaml|x-ndjson|x-www-form-urlencoded)(?:;|\s|$))/i

function whyUnreadable(headers: AnsweredBody['headers']): string | undefined {
  const { 'content-type': type = 'text/plain' } = headers
  if (isCompressed(headers)) return 'The answer is compressed, although that was not asked for.'
  return TEXT.test(type.trim()) ? undefined : `The answer is no text, but ${type.slice(0, 100)}.`
}
