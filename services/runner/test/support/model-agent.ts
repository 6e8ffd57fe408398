import {
  createCapturedLogger,
  type ModelProtocolName,
  type ModelTurn,
  type StubModelServer,
  toServerSentEvents,
} from '@workflow-service/testkit'
import { useStubModel } from '@workflow-service/testkit/use-stub-model'
import type { ModelConfig } from '../../src/agent/agent-settings.ts'
import type { Agent } from '../../src/agent/agent.ts'
import { type AgentHooks, createModelAgent } from '../../src/agent/model/model-agent.ts'
import type { ModelClock } from '../../src/agent/model/model-run.ts'
import { modelConfig } from './model-config.ts'

export const PROVIDERS: readonly ModelProtocolName[] = ['openai', 'openai-compatible', 'anthropic', 'google', 'bedrock']

/** A turn of a model that calls one tool. */
export function callTool(name: string, args: unknown) {
  return { toolCalls: [{ name, arguments: args }] }
}

/** A turn of a model that ends the run. */
export function end(status = 'done', reason = 'As asked.') {
  return callTool('end_run', { status, reason })
}

/** A turn of a model whose stream ends with these events, without an error of the connection. */
export function streaming(...events: object[]): ModelTurn {
  return {
    failure: 'custom',
    respond(response) {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(toServerSentEvents(events))
    },
  }
}

/** A clock that only its delays and the test move. */
export function createClock(nowMs = Date.parse('2026-01-31T09:00:00Z')) {
  const delays: number[] = []
  const clock = {
    nowMs,
    delays,
    now: (): number => clock.nowMs,
    monotonic: (): number => clock.nowMs,
    random: () => 0,
    async sleep(delayMs: number) {
      delays.push(delayMs)
      clock.nowMs += delayMs
    },
  }
  return clock
}

interface AgentOptions extends Partial<ModelConfig> {
  readonly hooks?: AgentHooks | undefined
  readonly clock?: ModelClock
}

/** Sets up agents that ask stubs of models, which are closed after each test. */
export function useModelAgent() {
  const startModelServer = useStubModel()
  let server: StubModelServer | undefined
  let lines: Record<string, unknown>[] = []
  return {
    /** Starts a stub with this script, and an agent that asks it. */
    async start(
      script: Parameters<typeof startModelServer>[0],
      { hooks, clock, ...config }: AgentOptions = {},
    ): Promise<Agent> {
      server = await startModelServer(script)
      const log = createCapturedLogger()
      ;({ lines } = log)
      const { logger } = log
      return createModelAgent([modelConfig({ baseUrl: server.baseUrl, ...config })], { logger, ...hooks }, clock)
    },
    /** The last stub. */
    get server(): StubModelServer {
      return server!
    },
    /** The lines of the operator's log of the last agent. */
    get lines() {
      return lines
    },
  }
}
