import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const CHECKSUM_LENGTH = 6
const KEY_PATTERN = /^(wfk_[0-9A-Za-z]{8})_[0-9A-Za-z]{32}([0-9A-Za-z]{6})$/

/** Creates a key (contract README, "Authentication"). It is shown once; only its prefix and hash are stored. */
export function createApiKey(): { key: string; prefix: string } {
  const prefix = `wfk_${randomText(8)}`
  const unchecked = `${prefix}_${randomText(32)}`
  return { key: unchecked + checksumOf(unchecked), prefix }
}

/**
 * Returns a key's public part, as in `api_keys.prefix`: `wfk_` and 8 characters. Undefined when length, alphabet or
 * checksum is wrong, so that a malformed key costs no query.
 */
export function prefixOfApiKey(text: string): string | undefined {
  const [, prefix, checksum] = KEY_PATTERN.exec(text) ?? []
  return checksum === checksumOf(text.slice(0, -CHECKSUM_LENGTH)) ? prefix : undefined
}

/** The SHA-256 hash of the whole key, as in `api_keys.key_sha256`. */
export function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer')
}

function randomText(length: number): string {
  return Array.from({ length }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
}

// CRC-32 in base 62, like GitHub's tokens: detects a mistyped key, and is not a secret.
function checksumOf(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let digit = 0; digit < CHECKSUM_LENGTH; digit += 1) {
    digits = ALPHABET[rest % ALPHABET.length] + digits
    rest = Math.floor(rest / ALPHABET.length)
  }
  return digits
}
