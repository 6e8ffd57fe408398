import type { LookupOut, LookupTool, TraceContext } from '@workflow-service/contract'
import type { OutboundResult } from '../outbound/outbound-result.ts'
import type { OutboundRequest } from '../outbound/send-request.ts'

/** A call of a tool of a look-up. */
export interface LookupCall {
  readonly lookup: LookupOut
  /** The value of its header. */
  readonly secret: string | null
  readonly tool: LookupTool
  readonly args: Record<string, unknown>
  readonly requestId: string
  readonly trace: TraceContext | null
}

/** What came back. `content` has neither secrets removed nor control characters. */
export interface LookupAnswer {
  readonly ok: boolean
  readonly status: number | null
  readonly content: Buffer | string
  readonly bytes: number
  readonly isCutOff: boolean
}

/** Makes a request of a look-up, with its header and within its limits. */
export type SendLookup = (
  request: Pick<OutboundRequest, 'url' | 'method' | 'body' | 'headers' | 'read'>,
) => Promise<OutboundResult>

/** What a call answers that brought nothing back. */
export function notAnswered(content: string, status: number | null = null): LookupAnswer {
  return { ok: false, status, content, bytes: 0, isCutOff: false }
}
