import { createCipheriv, createDecipheriv, createHash, createSecretKey, randomBytes } from 'node:crypto'
import type { Database } from './client.ts'

/** Whose secret it is. Bound into the encryption: a secret moved to another row cannot be decrypted there. */
export interface SecretOwner {
  organizationId: string
  sourceId: string
}

/** Encrypts signing secrets at rest. */
export interface SecretBox {
  /** The id of the key that encrypts: derived from the key, and tells nothing of it. */
  readonly keyId: string
  encrypt(owner: SecretOwner, secret: string): Buffer
  /** @throws SecretError when no listed key fits, or the bytes are damaged or another row's. */
  decrypt(owner: SecretOwner, sealed: Uint8Array): string
  /** Whether it is encrypted under the first key of the list. */
  isCurrent(sealed: Uint8Array): boolean
}

/** A stored secret that cannot be read. The message says what to do and holds nothing secret. */
export class SecretError extends Error {
  override name = 'SecretError'
}

// One byte of format, 8 of key id, 12 of nonce, then the text, then 16 of tag.
const FORMAT = 1
const KEY_ID_BYTES = 8
const NONCE_BYTES = 12
const TAG_BYTES = 16
const TEXT_START = 1 + KEY_ID_BYTES + NONCE_BYTES

/**
 * AES-256-GCM with a fresh 96-bit nonce for each secret, bound to organization and source. `keys` are base64 of 32 bytes
 * each: the first encrypts, all decrypt.
 * @throws TypeError when a key is not 32 bytes or there is none.
 */
export function createSecretBox(keys: readonly string[]): SecretBox {
  // Key objects, made once: given bytes, Node makes one for every call, which costs more than the encryption.
  const ring = new Map(keys.map(readKey).map((key) => [keyIdOf(key), createSecretKey(key)]))
  const [current] = ring
  if (!current) throw new TypeError('SECRETS_KEY holds no key')
  const [keyId, key] = current
  return {
    keyId,
    encrypt: (owner, secret) => {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
      cipher.setAAD(boundTo(owner))
      const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
      return Buffer.concat([Buffer.of(FORMAT), Buffer.from(keyId, 'hex'), nonce, text, cipher.getAuthTag()])
    },
    decrypt: (owner, sealed) => {
      const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
      if (bytes[0] !== FORMAT || bytes.length < TEXT_START + TAG_BYTES) throw new SecretError(DAMAGED)
      const id = readKeyId(bytes)
      const opening = ring.get(id)
      if (!opening) {
        throw new SecretError(
          `The signing secret is encrypted under key ${id}, which SECRETS_KEY does not list: add that key to the list, or enter the secret anew.`,
        )
      }
      const nonce = bytes.subarray(1 + KEY_ID_BYTES, TEXT_START)
      const decipher = createDecipheriv('aes-256-gcm', opening, nonce, { authTagLength: TAG_BYTES })
      decipher.setAAD(boundTo(owner))
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
      try {
        return Buffer.concat([decipher.update(bytes.subarray(TEXT_START, -TAG_BYTES)), decipher.final()]).toString(
          'utf8',
        )
      } catch {
        throw new SecretError(DAMAGED)
      }
    },
    isCurrent: (sealed) => sealed[0] === FORMAT && readKeyId(Buffer.from(sealed)) === keyId,
  }
}

/** What `rotateSecrets` did. `failed` names each source whose secret no listed key decrypts, and why. */
export interface SecretRotation {
  /** Encrypted anew under the first key. */
  rotated: number
  /** Under the first key already. */
  current: number
  failed: { organizationId: string; sourceId: string; reason: string }[]
}

/**
 * Encrypts every stored secret anew that is not under the first key of the list, in pages of `batchSize`. Safe beside
 * running dispatchers and to repeat: a secret that is saved meanwhile is left as saved. Once every dispatcher runs with the
 * new list, and a rotation after that has nothing left to do, the old keys can go.
 */
export async function rotateSecrets(
  db: Pick<Database, 'pool'>,
  box: SecretBox,
  options: { batchSize?: number } = {},
): Promise<SecretRotation> {
  const { batchSize = 200 } = options
  const result: SecretRotation = { rotated: 0, current: 0, failed: [] }
  let after = '00000000-0000-0000-0000-000000000000'
  for (;;) {
    const page = await db.pool.query<{ id: string; organization_id: string; signing_secret: Buffer }>(
      `SELECT id, organization_id, signing_secret FROM webhook_sources
       WHERE signing_secret IS NOT NULL AND id > $1 ORDER BY id LIMIT $2`,
      [after, batchSize],
    )
    for (const row of page.rows) {
      const owner = { organizationId: row.organization_id, sourceId: row.id }
      after = row.id
      if (box.isCurrent(row.signing_secret)) {
        result.current += 1
        continue
      }
      try {
        const sealed = box.encrypt(owner, box.decrypt(owner, row.signing_secret))
        const changed = await db.pool.query(
          'UPDATE webhook_sources SET signing_secret = $3 WHERE id = $1 AND signing_secret = $2',
          [row.id, row.signing_secret, sealed],
        )
        result.rotated += changed.rowCount ?? 0
      } catch (error) {
        if (!(error instanceof SecretError)) throw error
        result.failed.push({ ...owner, reason: error.message })
      }
    }
    if (page.rows.length < batchSize) return result
  }
}

const DAMAGED = 'The stored signing secret is damaged or belongs to another source: enter it anew.'

function boundTo({ organizationId, sourceId }: SecretOwner): Buffer {
  return Buffer.from(`webhook-signing-secret:${organizationId.toLowerCase()}:${sourceId.toLowerCase()}`, 'utf8')
}

function readKey(base64: string): Buffer {
  const key = Buffer.from(base64, 'base64')
  if (key.length !== 32) throw new TypeError('Each key of SECRETS_KEY must be base64 of 32 bytes')
  return key
}

function keyIdOf(key: Buffer): string {
  return createHash('sha256').update('secrets-key-id:').update(key).digest().subarray(0, KEY_ID_BYTES).toString('hex')
}

function readKeyId(sealed: Buffer): string {
  return sealed.subarray(1, 1 + KEY_ID_BYTES).toString('hex')
}
