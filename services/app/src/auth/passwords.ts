import { argon2, type Argon2Parameters, randomBytes, timingSafeEqual } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { InFlightLimiter, invalidFields, serviceUnavailable } from '@workflow-service/service-kit'
import { networkOf } from '@workflow-service/service-kit/rate-limit'
import type { Visitor } from './principal.ts'

/**
 * Argon2id with what OWASP's Password Storage Cheat Sheet asks for: 19 MiB, two passes. Measured: 25 ms of CPU, on
 * libuv's threads; 46 MiB and one pass, which earlier releases stored, are as hard to guess and take 62 ms: a stored
 * hash names its own.
 */
const MEMORY_KIB = 19_456
const PASSES = 2
const TAG_LENGTH = 32
const SALT_LENGTH = 16

/**
 * Two at once leave two of libuv's four threads to files, names and new connections of the database. Networks have
 * turns, so that one cannot delay all others.
 */
const limiter = new InFlightLimiter({ total: 2, perKey: 2, waitMs: 10_000, maxWaiting: 100, maxWaitingPerKey: 20 })
/**
 * A slot is taken for so many times as long as it works: passwords take half of a processor's time at most, however
 * many strangers try some and however slow it is. Measured: 15 a second.
 */
const SLOT_TIMES = 4
/** Hides that a hash of an earlier release takes longer than that of an address without an account. */
const MIN_FAILURE_MS = 250

/** Has the cost of a stored hash and matches no password: an unknown email address costs the same time. */
const NO_HASH = toPhc(Buffer.alloc(SALT_LENGTH), Buffer.alloc(TAG_LENGTH))

/**
 * Finds an account, and whether this is its password. Takes the same time without an account. The account is not looked
 * for before its turn: 200 look-ups at once took the process a second.
 */
export async function verifyPassword<Account extends { readonly passwordHash: string | null }>(
  visitor: Visitor,
  password: string,
  find: () => Promise<Account | undefined>,
): Promise<{ readonly found: Account | undefined; readonly isRight: boolean }> {
  let startedMs = 0
  const result = await withSlot(visitor, async () => {
    startedMs = performance.now()
    const found = await find()
    const hash = found?.passwordHash ?? NO_HASH
    const [, , , parameters = '', salt = '', tag = ''] = hash.split('$')
    const [, memory, passes] = /^m=(\d+),t=(\d+),p=1$/.exec(parameters) ?? []
    const derived = await deriveTag(password, Buffer.from(salt, 'base64'), Number(memory), Number(passes))
    const stored = Buffer.from(tag, 'base64')
    const isEqual = stored.length === derived.length && timingSafeEqual(stored, derived)
    return { found, isRight: isEqual && hash !== NO_HASH }
  })
  if (!result.isRight) await sleep(Math.max(0, startedMs + MIN_FAILURE_MS - performance.now()))
  return result
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
  const release = await limiter.acquire(networkOf(address, 48))
  if (typeof release === 'string') {
    throw serviceUnavailable('Too many people sign in at once; try again in a moment.')
  }
  const startedMs = performance.now()
  try {
    return await work()
  } finally {
    setTimeout(release, (SLOT_TIMES - 1) * (performance.now() - startedMs)).unref()
  }
}

/** zxcvbn takes up to 50 ms for so many characters, and a quarter of a second for 256. */
const JUDGED_LENGTH = 40
/** Scores below resist fewer than 10^8 guesses. */
const MIN_SCORE = 3
/** Shorter words may be a part of a good password. */
const WORD_MIN_LENGTH = 4

/**
 * Checks a new password (contract README, "Application") beyond its length, that it is neither common nor made of
 * `words`: the organization's name and the email address. Hashes it as a PHC string.
 * @throws ApiError 422 on `field`
 */
export async function hashNewPassword(
  visitor: Visitor,
  field: string,
  password: string,
  words: readonly string[],
): Promise<string> {
  const refuse = (message: string) => invalidFields([{ field, code: 'value_error', message }])
  const parts = words.flatMap((word) => [word, word.split('@')[0] ?? '']).map((word) => word.toLowerCase())
  const known = parts.filter((word) => Array.from(word).length >= WORD_MIN_LENGTH)
  if (known.some((word) => password.toLowerCase().includes(word))) {
    throw refuse('must not contain the email address or the name of the organization')
  }
  const zxcvbn = await (strength ??= loadStrength().catch((error: unknown) => {
    // A process without free file descriptors, for example, may load them for the next one.
    strength = undefined
    throw error
  }))
  const judged = Array.from(password).slice(0, JUDGED_LENGTH).join('')
  const { score } = await withSlot(visitor, async () => zxcvbn.check(judged, known))
  if (score < MIN_SCORE) throw refuse('is too easy to guess: use several unusual words, or a password manager')
  const salt = randomBytes(SALT_LENGTH)
  return await withSlot(visitor, async () => toPhc(salt, await deriveTag(password, salt, MEMORY_KIB, PASSES)))
}

let strength: ReturnType<typeof loadStrength> | undefined

/** Loads the dictionaries, 30 MiB of memory, when the first password is chosen. */
async function loadStrength() {
  const { ZxcvbnFactory } = await import('@zxcvbn-ts/core')
  const { adjacencyGraphs, dictionary } = await import('@zxcvbn-ts/language-common')
  return new ZxcvbnFactory({ dictionary, graphs: adjacencyGraphs })
}
