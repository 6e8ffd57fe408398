import { OPERATIONS, type Operation } from '@workflow-service/contract'
import { isDatabaseUnavailable, type Principal } from '@workflow-service/database'
import { ApiError, notFound, serviceUnavailable } from '@workflow-service/service-kit'
import type { Request, RequestHandler, Response } from 'express'
import ipaddr from 'ipaddr.js'
import type { AppContext } from './app-context.ts'
import { withDeadline } from './deadline.ts'
import type { RateDecision } from './rate-limits.ts'

/** How long a key may be looked up before the answer is 503; with a handler's own time, 5 s at most (design 5). */
const LOOK_UP_DEADLINE_MS = 2_000

const BEARER = /^bearer +([^ ]+)$/i

const ROUTES = Object.values<Operation>(OPERATIONS).map((operation) => ({
  operation,
  pattern: new RegExp(`^${operation.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
}))

/**
 * What every request has to pass, in the order of design 5: a key (401), an organization that is not suspended and the
 * key's scope (403), the rate limit (429), and a route (404). It stands before the router, so that no route can forget it.
 */
export function guard(ctx: Pick<AppContext, 'keys' | 'keyUses' | 'rateLimits'>): RequestHandler {
  return (req, res, next) => {
    const pass = (): void => {
      ctx.keyUses.note((res.locals['principal'] as Principal).apiKeyId)
      next()
    }
    const holder = authenticate(ctx, req, res)
    // Most keys are known and most limits counted here: waiting for what is there already would cost a tenth of a read.
    const limiting =
      holder instanceof Promise ? holder.then((it) => admit(ctx, req, res, it)) : admit(ctx, req, res, holder)
    if (limiting instanceof Promise) return limiting.then(pass)
    pass()
    return undefined
  }
}

/** Checks what the key may do, and takes the request off its rate limit; resolves when that was counted elsewhere. */
function admit(
  { rateLimits }: Pick<AppContext, 'rateLimits'>,
  req: Request,
  res: Response,
  holder: Principal,
): Promise<void> | undefined {
  res.locals['principal'] = holder
  const operation = findOperation(req)
  if (holder.isSuspended) throw new ApiError('organization_suspended', 'The organization of this key is suspended.')
  if (operation && !holder.scopes.includes(operation.scope)) {
    throw new ApiError(
      'insufficient_scope',
      `This needs a key with the scope ${operation.scope}; the key has ${holder.scopes.join(', ')}.`,
    )
  }
  const conclude = (decision: RateDecision | undefined): void => {
    note(res, decision)
    if (!operation) throw notFound(`${req.method} ${req.path}`)
    res.locals['operationId'] = operation.id
  }
  const taken = rateLimits.take('requests', holder.apiKeyId)
  if (taken instanceof Promise) return taken.then(conclude)
  conclude(taken)
  return undefined
}

function authenticate(
  ctx: Pick<AppContext, 'keys' | 'rateLimits'>,
  req: Request,
  res: Response,
): Principal | Promise<Principal> {
  const key = readKey(req)
  const found = key === undefined ? null : ctx.keys.holderOf(key)
  return found instanceof Promise || found === null ? identify(ctx, req, res, key, found) : found
}

/** Waits for a key that has to be looked up, and turns away who has none that is good. */
async function identify(
  { rateLimits }: Pick<AppContext, 'rateLimits'>,
  req: Request,
  res: Response,
  key: string | undefined,
  found: null | Promise<Principal | null>,
): Promise<Principal> {
  try {
    const holder = found && (await withDeadline(found, LOOK_UP_DEADLINE_MS))
    if (holder) return holder
  } catch (error) {
    throw isDatabaseUnavailable(error)
      ? serviceUnavailable('The service cannot check keys at the moment; try again.', error)
      : error
  }
  // A good key always passes, whatever else comes from its address.
  note(res, await rateLimits.take('failed-authentications', toNetwork(req.ip ?? '')))
  throw new ApiError('unauthorized', explain(req, key), { headers: { 'WWW-Authenticate': 'Bearer' } })
}

/** Puts the rate limit's headers on the answer, and throws when there is nothing left. */
function note(res: Response, decision: RateDecision | undefined): void {
  if (!decision) return
  ;(res.locals['answerHeaders'] as string[]).push(...decision.headers)
  if (decision.isAllowed) return
  const seconds = decision.retrySeconds
  throw new ApiError(
    'rate_limited',
    `Too many requests. Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`,
    {
      headers: { 'Retry-After': String(seconds) },
    },
  )
}

/** The key of the one Authorization header; undefined when there is none, several, or another scheme. */
function readKey(req: Request): string | undefined {
  const { authorization } = req.headers
  if (authorization === undefined) return undefined
  const names = req.rawHeaders.filter(
    (text, index) => index % 2 === 0 && text.length === 13 && /^authorization$/i.test(text),
  )
  return names.length === 1 ? BEARER.exec(authorization)?.[1] : undefined
}

function explain(req: Request, key: string | undefined): string {
  if (key !== undefined) return 'The API key is not valid: it is mistyped, unknown, revoked or expired.'
  return req.headers.authorization === undefined
    ? 'Send your API key in the header "Authorization: Bearer wfk_…".'
    : 'The Authorization header must be sent once, as "Authorization: Bearer wfk_…".'
}

function findOperation(req: Request): Operation | undefined {
  const method = req.method.toLowerCase()
  return ROUTES.find(({ operation, pattern }) => operation.method === method && pattern.test(req.path))?.operation
}

/** An IPv6 subscriber has at least a /64 of addresses: they count as one. */
function toNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString()
}
