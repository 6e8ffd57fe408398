import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { findExampleErrors, VERIFICATION_TYPE } from '@workflow-service/contract/check-json-value'
import { checkServiceToken, createServiceToken } from '@workflow-service/webhook-token'
import { hasDatabase } from '../access.ts'
import type { CommonOptions } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { CliError, UsageError } from '../cli-error.ts'
import type { PrintedResult } from '../command-result.ts'
import type { openForwarding as openForwardingOf } from '../operator/follow-deliveries.ts'
import { readJsonObject } from '../read-file.ts'
import { type LocalAnswer, type LocalRequest, sendLocally } from './send-locally.ts'
import { paint, showDuration, type Terminal, withoutControls } from '../terminal.ts'

interface Options extends CommonOptions {
  readonly source?: string
  readonly secret?: string
  readonly example?: string
  readonly once?: boolean
  readonly timeout?: number
}

type Forwarding = Awaited<ReturnType<typeof openForwardingOf>>

/** What is sent, and where. */
type Session = Awaited<ReturnType<typeof openSession>>

const RETRY_MS = 2_000
const DEFAULT_EXAMPLE = { message: 'Hello' }

/** `wf listen PORT|URL` */
export async function listen(ctx: CliContext, endpoint: string, options: Options): Promise<PrintedResult> {
  const { terminal } = ctx
  const url = parseEndpoint(endpoint)
  const forwarded = await openForwarding(ctx, options)
  const signal = ctx.interrupted(options.timeout)
  const session = await openSession(ctx, url, options, forwarded)
  const print = (options.json ? createJsonPrinter : createTextPrinter)(terminal, session)
  const show = createShow(session, print, signal)
  const isConfirmed = await verify(session, show, { signal, isOnce: options.once ?? false })
  // Before the further requests: a payload that is sent when they are shown is not missed.
  const payloads = isConfirmed && !options.once ? await forwarded?.payloads(signal) : undefined
  const isChecking = isConfirmed && (session.secret === null || (await checkRejections(session, session.secret, show)))
  if (isConfirmed && options.example !== undefined && options.source === undefined) {
    await show({ kind: 'payload', body: session.example })
  }
  for await (const copied of payloads ?? []) {
    await show({ kind: 'payload', ...copied })
  }
  return isConfirmed && isChecking ? 0 : 1
}

async function openForwarding(ctx: CliContext, { source, organization }: Options): Promise<Forwarding | undefined> {
  if (source === undefined) return undefined
  if (!hasDatabase(ctx.env)) {
    throw new CliError(
      '--source needs the database: payloads are not in the public API. Without it, wf listen tries the endpoint with --example FILE.',
    )
  }
  const { openForwarding: open } = await import('../operator/follow-deliveries.ts')
  return await open(await ctx.operator(), source, organization)
}

async function openSession(ctx: CliContext, url: string, options: Options, forwarded: Forwarding | undefined) {
  const given = options.example === undefined ? undefined : await readExample(ctx, options.example)
  const source = forwarded?.source
  const isUnsigned = source !== undefined && !source.has_signing_secret && options.secret === undefined
  const named = options.secret === '-' ? (await ctx.readInput()).trim() : options.secret
  if (named === '') throw new CliError('The signing secret is empty.')
  const secret = isUnsigned ? null : (named ?? randomBytes(32).toString('base64url'))
  const example = given ?? source?.example_request_body ?? DEFAULT_EXAMPLE
  const body = {
    type: VERIFICATION_TYPE,
    organization_id: forwarded?.organizationId ?? '00000000-0000-8000-8000-000000000001',
    source_id: source?.id ?? '00000000-0000-8000-8000-000000000002',
    data: { target_url: url, signing_secret: secret, body_example: example },
  }
  return {
    url,
    secret,
    sourceName: source?.name ?? null,
    example,
    verification: { kind: 'verification', body } as const,
  }
}

async function readExample(ctx: CliContext, name: string): Promise<Record<string, unknown>> {
  const example = await readJsonObject(ctx, name)
  const errors = findExampleErrors(example, 'example')
  if (errors.length === 0) return example
  throw new CliError(
    `${name} cannot be an example request body:\n${errors.map(({ field, message }) => `  ${field} ${message}`).join('\n')}`,
  )
}

/** A request to show and send. */
interface Exchange extends Omit<LocalRequest, 'url' | 'secret' | 'interrupted'> {
  /** What is wrong with the token; the endpoint has to answer 401. */
  readonly rejection?: string
  /** The answer to the same request before: an equal one is not shown again. */
  readonly before?: LocalAnswer | undefined
}

type Show = (exchange: Exchange) => Promise<LocalAnswer>
type Print = (exchange: Exchange, answer: LocalAnswer, at: Date) => Promise<void>

/** Sends a request, and prints it with its answer unless that is the one of before, or Ctrl-C came before any. */
function createShow({ url, secret }: Session, print: Print, interrupted: AbortSignal): Show {
  return async (exchange) => {
    const at = new Date()
    const answer = await sendLocally({ url, secret, interrupted, ...exchange })
    const { before } = exchange
    if (interrupted.aborted && answer.status === null) return answer
    if (before?.status !== answer.status || before.error !== answer.error) await print(exchange, answer, at)
    return answer
  }
}

/** Sends the verification request until it is confirmed. Returns whether it was. */
async function verify(
  { verification }: Session,
  show: Show,
  { signal, isOnce }: { signal: AbortSignal; isOnce: boolean },
): Promise<boolean> {
  let before: LocalAnswer | undefined
  for (;;) {
    const answer = await show({ ...verification, before })
    if (isAccepted(answer)) return true
    if (isOnce || signal.aborted) return false
    before = answer
    await sleep(RETRY_MS, undefined, { signal }).catch(() => {})
    if (signal.aborted) return false
  }
}

const OLD_MS = 10 * 60_000

/**
 * Sends requests that the endpoint has to answer with 401 (contract README, "Service token"). Returns whether it did.
 */
async function checkRejections({ verification }: Session, secret: string, show: Show): Promise<boolean> {
  const tokens: [rejection: string, token: string | null][] = [
    ['no token', null],
    ['a token of another secret', await createServiceToken(randomBytes(32).toString('base64url'))],
    ['a token that is 10 minutes old', await createServiceToken(secret, { now: () => Date.now() - OLD_MS })],
  ]
  let areRejected = true
  for (const [rejection, token] of tokens) {
    const { status } = await show({ ...verification, rejection, token })
    areRejected &&= status === 401
  }
  return areRejected
}

function isAccepted({ status }: LocalAnswer): boolean {
  return status !== null && status >= 200 && status <= 299
}

function isExpected(answer: LocalAnswer, { rejection }: Exchange): boolean {
  return rejection === undefined ? isAccepted(answer) : answer.status === 401
}

function createJsonPrinter(terminal: Terminal, { url, secret }: Session): Print {
  const write = (line: object) => terminal.write(`${JSON.stringify(line)}\n`)
  write({ target_url: url, signing_secret: secret })
  return async (exchange, answer, at) => {
    const { kind, body, rejection = null, copyOf = null } = exchange
    write({
      at,
      kind,
      copy_of: copyOf,
      request_body: body,
      token: answer.token,
      token_check: secret === null ? null : await checkServiceToken(answer.token, secret),
      wrong_token: rejection,
      status: answer.status,
      answer: answer.status === null ? null : answer.text,
      error: answer.error ?? null,
      duration_ms: Math.round(answer.durationMs),
      as_expected: isExpected(answer, exchange),
    })
  }
}

const BODY_MAX_LINES = 40
const ANSWER_MAX_LENGTH = 300

function createTextPrinter(terminal: Terminal, { url, secret, sourceName }: Session): Print {
  const fact = (name: string, value: string) =>
    terminal.write(`${paint(terminal, 'dim', name.padEnd(16))}${withoutControls(value)}\n`)
  fact('Endpoint', url)
  fact('Signing secret', secret ?? 'none: requests are not signed')
  if (sourceName !== null) fact('Payloads of', sourceName)
  terminal.write('\n')
  return async (exchange, answer, at) => {
    const { kind, body, rejection, copyOf } = exchange
    const clock = at.toISOString().slice(11, 19)
    const isGood = isExpected(answer, exchange)
    const mark = paint(terminal, isGood ? 'green' : 'red', isGood ? '✓' : '✗')
    const what = `${kind}${copyOf === undefined ? '' : `, copy of ${copyOf}`}${rejection === undefined ? '' : ` with ${rejection}`}`
    const result = answer.status === null ? answer.error : `${answer.status} in ${showDuration(answer.durationMs)}`
    const lines = [`${paint(terminal, 'dim', clock)}  ${mark} ${what} → ${result}`]
    if (rejection === undefined) {
      lines.push(...bodyLines(body), ...(secret === null ? [] : [await describeToken(answer.token, secret)]))
    }
    if (answer.status !== null && answer.text.trim() !== '')
      lines.push(`answer: ${answer.text.trim().slice(0, ANSWER_MAX_LENGTH)}`)
    const advice = isGood ? undefined : adviceFor(answer, exchange, secret)
    const [headline, ...details] = lines
    terminal.write(
      `${headline}\n${details.map((line) => `${paint(terminal, 'dim', `            │ ${withoutControls(line)}`)}\n`).join('')}`,
    )
    if (advice !== undefined) terminal.write(`            ${paint(terminal, 'yellow', advice)}\n`)
  }
}

function bodyLines(body: object): string[] {
  const lines = JSON.stringify(body, null, 2).split('\n')
  return lines.length <= BODY_MAX_LINES
    ? lines
    : [...lines.slice(0, BODY_MAX_LINES), `… ${lines.length - BODY_MAX_LINES} more lines`]
}

async function describeToken(token: string | null, secret: string): Promise<string> {
  const check = await checkServiceToken(token, secret)
  return check.ok
    ? `X-Service-Token: ${token} (valid: signed with the secret at ${new Date(check.timestamp * 1_000).toISOString().slice(11, 19)})`
    : `X-Service-Token: ${check.reason}`
}

function adviceFor({ status }: LocalAnswer, { kind, rejection }: Exchange, secret: string | null): string | undefined {
  if (rejection !== undefined)
    return `Anyone could send this. Answer 401 to a request with ${rejection}: see packages/webhook-token.`
  if (status === null)
    return kind === 'verification' ? 'Waiting until the endpoint confirms. Ctrl-C ends this.' : undefined
  if (status === 401 && secret !== null)
    return 'Give your endpoint this signing secret, or name the one that it has with --secret.'
  if (status >= 300 && status <= 399) return 'Redirects are not followed: give the final URL.'
  if (kind === 'verification') return 'Answer a 2xx status to a request whose type is service.webhook.verification.'
  return 'The agent would learn that the payload was not accepted.'
}

/** Parses a port, a port with a path, a host with a port, or a URL. @throws UsageError */
function parseEndpoint(text: string): string {
  const full = /^\d{1,5}(?:\/|$)/.test(text)
    ? `http://localhost:${text}`
    : /^[\w.-]+:\d{1,5}(?:\/|$)/.test(text)
      ? `http://${text}`
      : text
  const url = URL.canParse(full) ? new URL(full) : undefined
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    throw new UsageError(
      'The endpoint must be a port such as 3000, with a path such as 3000/orders, or an http:// or https:// URL.',
    )
  }
  return full === text ? text : url.href
}
