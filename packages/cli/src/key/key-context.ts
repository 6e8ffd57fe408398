import { readCredentials } from '../access.ts'
import { ApiError, ConnectionError, WorkflowClient } from '../../../client/src/index.ts'
import type { CliContext, KeyContext, Opened } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import type { WorkflowReader } from '../workflows.ts'

export function openKeyContext(ctx: CliContext): Opened<KeyContext> {
  const { url, key } = readCredentials(ctx.env)
  const client = createClient(url, key)
  const workflows: WorkflowReader = {
    isSuspended: false,
    list: (params) => client.workflows.list(params),
    get: (id) => client.workflows.get(id),
  }
  return { context: { ...ctx, client, url, workflows }, explain: (error) => explainApiError(error, url) }
}

/** @throws CliError if the address or the key cannot be used. */
export function createClient(url: string, key: string): WorkflowClient {
  try {
    return new WorkflowClient({ baseUrl: url, apiKey: key })
  } catch (error) {
    // The client names its own options.
    const message = (error as Error).message
      .replace('baseUrl must be an address', 'The address of the service must be one')
      .replace('apiKey must be', 'The key must be')
      .replace(': is its setting missing?', '.')
    throw new CliError(message, {}, error)
  }
}

const ADVICE: Record<string, string> = {
  unauthorized: 'It may be revoked or expired, or belong to another installation: wf login saves another one.',
  insufficient_scope: 'Use a key with that scope: wf login saves another one.',
  not_found: 'A key sees only what belongs to its organization: wf whoami shows which.',
  path_not_found:
    'Is this the address of the public API? That of the application is another one, and /v1 is no part of it.',
  unexpected_answer: 'Check the address: wf whoami shows it.',
}

/** Converts an error of the client into one with advice; undefined for others. */
export function explainApiError(error: unknown, url: string): CliError | undefined {
  if (error instanceof ApiError) {
    const { status, code, requestId, details } = error
    // A path that this API has: another server answers.
    const found = code === 'not_found' && /: [A-Z]+ \//.test(error.message) ? 'path_not_found' : code
    const advice = ADVICE[found] === undefined ? '' : ` ${ADVICE[found]}`
    return new CliError(`${error.message}${advice}`, { code, status, request_id: requestId, details }, error)
  }
  if (error instanceof ConnectionError) {
    return new CliError(`${url} does not answer. ${error.message}`, { code: 'connection_error' }, error)
  }
  return undefined
}
