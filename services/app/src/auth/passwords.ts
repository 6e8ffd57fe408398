import { argon2, type Argon2Parameters, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import type { FieldError } from '@workflow-service/contract'
import { createInFlightLimiter, invalidFields, serviceUnavailable } from '@workflow-service/service-kit'
import { networkOf } from '@workflow-service/service-kit/rate-limit'
import type { Visitor } from './principal.ts'

/** Argon2id with OWASP's first recommendation: 46 MiB, one pass. Measured: 78 ms. */
const MEMORY_KIB = 47_104
const PASSES = 1
const TAG_LENGTH = 32
const SALT_LENGTH = 16

/** 4 × 46 MiB at most. Callers of one network wait for each other, so that one cannot delay all others. */
const limiter = createInFlightLimiter({ total: 4, perKey: 2, waitMs: 5_000, maxWaiting: 200, maxWaitingPerKey: 20 })

/** Has the cost of a stored hash and matches no password: an unknown email address costs the same time. */
const NO_HASH = toPhc(Buffer.alloc(SALT_LENGTH), Buffer.alloc(TAG_LENGTH))

/** Whether the password has this hash. Takes the same time without a hash. */
export async function verifyPassword(visitor: Visitor, password: string, hash: string | null): Promise<boolean> {
  const [, , , parameters = '', salt = '', tag = ''] = (hash ?? NO_HASH).split('$')
  const [, memory, passes] = /^m=(\d+),t=(\d+),p=1$/.exec(parameters) ?? []
  return await withSlot(visitor, async () => {
    const derived = await deriveTag(password, Buffer.from(salt, 'base64'), Number(memory), Number(passes))
    const stored = Buffer.from(tag, 'base64')
    return stored.length === derived.length && timingSafeEqual(stored, derived) && hash !== null
  })
}

async function deriveTag(password: string, nonce: Buffer, memory: number, passes: number): Promise<Buffer> {
  const message = password.normalize('NFKC')
  const parameters: Argon2Parameters = { message, nonce, parallelism: 1, tagLength: TAG_LENGTH, memory, passes }
  return await promisify(argon2)('argon2id', parameters)
}

function toPhc(salt: Buffer, tag: Buffer): string {
  return `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=1$${unpadded(salt)}$${unpadded(tag)}`
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '')
}

async function withSlot<Result>({ address }: Visitor, work: () => Promise<Result>): Promise<Result> {
  const release = await limiter.acquire(networkOf(address))
  if (typeof release !== 'function') throw serviceUnavailable('Too many people sign in at once; try again in a moment.')
  try {
    return await work()
  } finally {
    release()
  }
}

/** zxcvbn takes up to 50 ms for so many characters, and a quarter of a second for 256. */
const JUDGED_LENGTH = 40
/** Scores below resist fewer than 10^8 guesses. */
const MIN_SCORE = 3
/** Shorter words may be a part of a good password. */
const WORD_MIN_LENGTH = 4

/**
 * Checks and hashes a new password, as a PHC string.
 * @throws ApiError 422 on `field`
 */
export async function hashNewPassword(
  visitor: Visitor,
  field: string,
  password: string,
  words: readonly string[],
): Promise<string> {
  const violation = await checkNewPassword(visitor, field, password, words)
  if (violation) throw invalidFields([violation])
  const salt = randomBytes(SALT_LENGTH)
  return await withSlot(visitor, async () => toPhc(salt, await deriveTag(password, salt, MEMORY_KIB, PASSES)))
}

/**
 * Checks a new password (contract README, "Application") beyond its length: that it is neither common nor made of
 * `words`: the organization's name and the email address. Returns the violation of `field`, if any.
 */
async function checkNewPassword(
  visitor: Visitor,
  field: string,
  password: string,
  words: readonly string[],
): Promise<FieldError | undefined> {
  const parts = words.flatMap((word) => [word, word.split('@')[0] ?? '']).map((word) => word.toLowerCase())
  const known = parts.filter((word) => Array.from(word).length >= WORD_MIN_LENGTH)
  if (known.some((word) => password.toLowerCase().includes(word))) {
    return { field, code: 'value_error', message: 'must not contain the email address or the name of the organization' }
  }
  const score = await withSlot(visitor, async () => {
    const scoreOf = await (scorePassword ??= loadStrength())
    return scoreOf(Array.from(password).slice(0, JUDGED_LENGTH).join(''), known)
  })
  if (score >= MIN_SCORE) return undefined
  return {
    field,
    code: 'value_error',
    message: 'is too easy to guess: use several unusual words, or a password manager',
  }
}

type ScorePassword = (password: string, words: string[]) => number

let scorePassword: Promise<ScorePassword> | undefined

/** Loads the dictionaries, 30 MiB of memory, when the first password is chosen. */
async function loadStrength(): Promise<ScorePassword> {
  const { ZxcvbnFactory } = await import('@zxcvbn-ts/core')
  const { adjacencyGraphs, dictionary } = await import('@zxcvbn-ts/language-common')
  const zxcvbn = new ZxcvbnFactory({ dictionary, graphs: adjacencyGraphs })
  return (password, words) => zxcvbn.check(password, words).score
}
