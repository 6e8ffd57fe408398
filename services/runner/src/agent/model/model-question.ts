import type { ModelAnswerStep } from '@workflow-service/contract'
import type { ProviderMetadata, ModelMessage, ToolSet } from 'ai'

/** What a model is asked for one answer. */
export interface ModelQuestion {
  readonly instructions: string
  readonly messages: ModelMessage[]
  /** Tools without `execute`: the agent executes the calls itself. */
  readonly tools: ToolSet
  /** Attached to the first message. */
  readonly files?: readonly AttachedFile[]
}

/** A PDF or an image. */
export interface AttachedFile {
  /** As the text refers to it. */
  readonly path: string
  readonly mediaType: string
  readonly base64: string
  /** What it may cost at most as input. */
  readonly tokens: number
}

export interface ModelAnswer {
  readonly parts: readonly ModelAnswerContent[]
  /** Why the model stopped, as the AI SDK names it: stop, tool-calls, length, content-filter, error or other. */
  readonly finishReason: string
  /** The same as the provider names it, such as `pause_turn`; null if it gave none. */
  readonly rawFinishReason: string | null
  readonly usage: ModelUsage
  /** The provider's id of the answer, for its support; null if it gave none. */
  readonly responseId: string | null
}

export type ModelAnswerContent = { readonly providerMetadata?: ProviderMetadata | undefined } & (
  | { readonly type: 'text' | 'reasoning'; readonly text: string }
  /** `input`: the arguments as the model wrote them: JSON, unless the model wrote something else. */
  | { readonly type: 'tool-call'; readonly callId: string; readonly tool: string; readonly input: string }
)

/** Tokens of one answer, as in its step of the journal; null where the provider reports no number. */
export type ModelUsage = Required<
  Pick<
    ModelAnswerStep,
    'input_tokens' | 'cache_read_tokens' | 'cache_write_tokens' | 'output_tokens' | 'reasoning_tokens'
  >
>

/**
 * Asks a model for one answer with one request: no tool call is executed, and nothing is repeated.
 * @throws ModelError for every error of the model or its API; the reason of `abort` when it aborts.
 */
export type AskModel = (question: ModelQuestion, abort: AbortSignal) => Promise<ModelAnswer>
