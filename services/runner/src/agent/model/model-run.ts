import type { ModelAnswerStep, SessionSummaryStep } from '@workflow-service/contract'
import type { LogEvent } from '@workflow-service/service-kit'
import type { ModelConfig } from '../agent-settings.ts'
import { type AgentSteps, listData } from '../agent-steps.ts'
import type { AgentRun } from '../agent.ts'
import { sleep } from '../../sleep.ts'
import type { ModelGate } from './model-gate.ts'
import type { AskModel } from './model-question.ts'
import { findSummary } from './session-history.ts'

/** A run that would wait longer for an answer, its failed requests included, gives its slot back. */
export const PARK_AFTER_MS = 30_000

/** Time and randomness; tests replace them. */
export interface ModelClock {
  /** The time of day, which may be wrong or set meanwhile: no duration is measured by it. */
  readonly now: () => number
  readonly monotonic: () => number
  readonly random: () => number
  readonly sleep: (delayMs: number, signal: AbortSignal) => Promise<void>
}

export const systemClock: ModelClock = {
  now: Date.now,
  monotonic: () => performance.now(),
  random: Math.random,
  sleep,
}

/** A model that a run may use. */
export interface UsableModel {
  readonly config: ModelConfig
  /** PROVIDER:NAME. */
  readonly model: string
  /** What the pace of the requests is kept by, which all runners share: the model at one address, with one key. */
  readonly pace: string
  readonly ask: AskModel
  /**
   * Since when its API has answered no request: of this process with the key of the service, of this attempt with one
   * of the organization. Null if it answers.
   */
  readonly outage: { sinceMs: number | null }
  readonly fallback: UsableModel | undefined
}

/** What executing a run with a model needs. */
export interface ModelRun extends UsableModel {
  readonly run: AgentRun
  readonly steps: AgentSteps
  readonly gate: ModelGate
  readonly clock: ModelClock
  /** Called after an answer or a summary was written to the journal. */
  readonly onModelAnswer: (answer: ModelAnswerStep | SessionSummaryStep) => void
  /** Writes to the operator's log, with the ids of the run. */
  readonly log: (level: 'info' | 'warn', event: LogEvent, fields: Readonly<Record<string, unknown>>) => void
}

export function listAnswers({ all }: Pick<AgentSteps, 'all'>): ModelAnswerStep[] {
  return listData(all, 'model_answer')
}

/** The summary of the session and the answers. */
export function listPaid(steps: AgentSteps): (ModelAnswerStep | SessionSummaryStep)[] {
  return [findSummary(steps.all) ?? [], listAnswers(steps)].flat()
}
