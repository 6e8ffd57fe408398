import { readCredentials } from '../access.ts'
import { ApiError, ConnectionError, WorkflowClient } from '../../../client/src/index.ts'
import type { CliContext, KeyContext, Opened } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import type { WorkflowReader } from '../workflows.ts'

export function openKeyContext(ctx: CliContext): Opened<KeyContext> {
  const { url, key } = readCredentials(ctx.env)
  const client = createClient(url, key)
  const context = { ...ctx, client, url, workflows: workflowsOf(client) }
  return { context, explain: (error) => explainApiError(error, url) }
}

function workflowsOf({ workflows }: WorkflowClient): WorkflowReader {
  return {
    isSuspended: false,
    list: (params) => workflows.list(params),
    get: (id) => workflows.get(id),
  }
}

/** @throws CliError if the address or the key cannot be used. */
export function createClient(url: string, key: string): WorkflowClient {
  try {
    return new WorkflowClient({ baseUrl: url, apiKey: key })
  } catch (error) {
    throw new CliError((error as Error).message, {}, error)
  }
}

const ADVICE: Record<string, string> = {
  unauthorized: 'It may be revoked or expired, or belong to another installation: wf login saves another one.',
  insufficient_scope: 'Use a key with that scope: wf login saves another one.',
  not_found: 'A key sees only what belongs to its organization: wf whoami shows which.',
  unexpected_answer: 'Check the address: wf whoami shows it.',
}

/** Converts an error of the client into one with advice; undefined for others. */
export function explainApiError(error: unknown, url: string): CliError | undefined {
  if (error instanceof ApiError) {
    const { status, code, requestId, details } = error
    const advice = ADVICE[code] === undefined ? '' : ` ${ADVICE[code]}`
    return new CliError(`${error.message}${advice}`, { code, status, request_id: requestId, details }, error)
  }
  if (error instanceof ConnectionError) {
    return new CliError(`${url} does not answer. ${error.message}`, { code: 'connection_error' }, error)
  }
  return undefined
}
