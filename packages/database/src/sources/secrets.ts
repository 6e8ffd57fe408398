import { createCipheriv, createDecipheriv, createHash, createSecretKey, randomBytes } from 'node:crypto'
import { type Db, NIL_UUID } from '../connection/index.ts'

/**
 * What owns a secret, such as a webhook source. The encryption authenticates it: a secret copied to another row cannot
 * be decrypted.
 */
export interface SecretOwner {
  readonly organizationId: string
  readonly id: string
}

/** A stored secret cannot be decrypted. The message gives advice and contains nothing secret. */
export class SecretError extends Error {
  override name = 'SecretError'
  /** The key is not in the list. During a rotation, another process may already have it. */
  readonly isKeyUnknown: boolean

  constructor(message: string, options: { isKeyUnknown?: boolean } = {}) {
    super(message)
    this.isKeyUnknown = options.isKeyUnknown ?? false
  }
}

// 1 byte format, 8 bytes key id, 12 bytes nonce, the encrypted text, 16 bytes tag.
const FORMAT = 1
const KEY_ID_BYTES = 8
const NONCE_BYTES = 12
const TAG_BYTES = 16
const TEXT_START = 1 + KEY_ID_BYTES + NONCE_BYTES

/**
 * Creates a box that encrypts with AES-256-GCM, with a random 96-bit nonce for each secret and with its owner as
 * additional data. `keys` are 32 bytes each in base64: the first encrypts, all decrypt.
 * @throws TypeError when a key is not 32 bytes or there is none.
 */
export function createSecretBox(keys: readonly string[]) {
  // KeyObjects are created once: from raw bytes, Node would create one in every call, which costs more than the
  // encryption.
  const keyById = new Map(keys.map(readKey).map((key) => [keyIdOf(key), createSecretKey(key)]))
  const [current] = keyById
  if (!current) throw new TypeError('SECRETS_KEY contains no key')
  const [keyId, key] = current
  return {
    /** The id of the key that encrypts: a hash of the key. */
    keyId,
    encrypt: (owner: SecretOwner, secret: string): Buffer => {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
      cipher.setAAD(additionalData(owner))
      const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
      return Buffer.concat([Buffer.of(FORMAT), Buffer.from(keyId, 'hex'), nonce, text, cipher.getAuthTag()])
    },
    /** @throws SecretError when no listed key fits, or the bytes are damaged or belong to another row. */
    decrypt: (owner: SecretOwner, sealed: Uint8Array): string => {
      const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
      if (bytes[0] !== FORMAT || bytes.length < TEXT_START + TAG_BYTES) throw new SecretError(DAMAGED)
      const id = readKeyId(bytes)
      const decryptionKey = keyById.get(id)
      if (!decryptionKey) {
        throw new SecretError(
          `The secret is encrypted with key ${id}, which SECRETS_KEY does not list: add that key to the list, or enter the secret again.`,
          { isKeyUnknown: true },
        )
      }
      const nonce = bytes.subarray(1 + KEY_ID_BYTES, TEXT_START)
      const decipher = createDecipheriv('aes-256-gcm', decryptionKey, nonce, { authTagLength: TAG_BYTES })
      decipher.setAAD(additionalData(owner))
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
      try {
        return Buffer.concat([decipher.update(bytes.subarray(TEXT_START, -TAG_BYTES)), decipher.final()]).toString(
          'utf8',
        )
      } catch {
        throw new SecretError(DAMAGED)
      }
    },
    /** Whether the secret is encrypted with the first key of the list. */
    isCurrent: (sealed: Uint8Array): boolean => sealed[0] === FORMAT && readKeyId(Buffer.from(sealed)) === keyId,
  }
}

/** Encrypts secrets at rest. */
export type SecretBox = ReturnType<typeof createSecretBox>

/** The result of `rotateSecrets`. `failed` has the owner of each secret that could not be decrypted, and why. */
interface SecretRotation {
  /** Encrypted again, with the first key. */
  rotated: number
  /** Already encrypted with the first key. */
  current: number
  failed: (SecretOwner & { kind: (typeof STORED_SECRETS)[number]['kind']; reason: string })[]
}

/** Where secrets are stored. */
const STORED_SECRETS = [
  { kind: 'webhook_source', table: 'webhook_sources', id: 'id', column: 'signing_secret' },
  { kind: 'lookup', table: 'lookups', id: 'id', column: 'header_value' },
  { kind: 'model_key', table: 'model_keys', id: 'id', column: 'key' },
  // The webhook of an organization's notices is encrypted for its organization.
  { kind: 'notice_webhook', table: 'notice_webhooks', id: 'organization_id', column: 'signing_secret' },
] as const

/**
 * Encrypts every stored secret with the first key of the list, in pages of `batchSize`. Safe to repeat and to run
 * beside dispatchers: a secret that is saved meanwhile is not overwritten. The old keys can be removed once all
 * dispatchers have the new list and a later rotation has found nothing to rotate.
 */
export async function rotateSecrets(db: Db, box: SecretBox, options: { batchSize?: number } = {}) {
  const { batchSize = 200 } = options
  const result: SecretRotation = { rotated: 0, current: 0, failed: [] }
  for (const stored of STORED_SECRETS) await rotateColumn(db, box, { batchSize, ...stored }, result)
  return result
}

async function rotateColumn(
  db: Db,
  box: SecretBox,
  { kind, table, id, column, batchSize }: (typeof STORED_SECRETS)[number] & { readonly batchSize: number },
  result: SecretRotation,
): Promise<void> {
  let after = NIL_UUID
  for (;;) {
    const page = await db.pool.query<SecretOwner & { secret: Buffer }>(
      `SELECT ${id} AS id, organization_id AS "organizationId", ${column} AS secret
       FROM ${table}
       WHERE ${column} IS NOT NULL AND ${id} > $1 ORDER BY ${id} LIMIT $2`,
      [after, batchSize],
    )
    for (const { secret, ...owner } of page.rows) {
      after = owner.id
      if (box.isCurrent(secret)) {
        result.current += 1
        continue
      }
      try {
        const sealed = box.encrypt(owner, box.decrypt(owner, secret))
        const changed = await db.pool.query(`UPDATE ${table} SET ${column} = $3 WHERE ${id} = $1 AND ${column} = $2`, [
          owner.id,
          secret,
          sealed,
        ])
        result.rotated += changed.rowCount ?? 0
      } catch (error) {
        if (!(error instanceof SecretError)) throw error
        result.failed.push({ kind, ...owner, reason: error.message })
      }
    }
    if (page.rows.length < batchSize) return
  }
}

const DAMAGED = 'The stored secret is damaged, or was copied from elsewhere: enter it again.'

function additionalData({ organizationId, id }: SecretOwner): Buffer {
  return Buffer.from(`webhook-signing-secret:${organizationId.toLowerCase()}:${id.toLowerCase()}`, 'utf8')
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
