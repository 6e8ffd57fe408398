import { argon2Sync } from 'node:crypto'

export const PASSWORD = 'orbit-velvet-cactus-41'
export const NEW_PASSWORD = 'lantern-gravel-tulip-97'

/** A hash of the password, as this release or an earlier one stores it. */
export function storedHash(password: string, [memory, passes] = [19_456, 2]): string {
  const nonce = Buffer.alloc(16, 7)
  const tag = argon2Sync('argon2id', { message: password, nonce, parallelism: 1, tagLength: 32, memory, passes })
  const [salt, hash] = [nonce, tag].map((bytes) => bytes.toString('base64').replace(/=+$/, ''))
  return `$argon2id$v=19$m=${memory},t=${passes},p=1$${salt}$${hash}`
}

export const PASSWORD_HASH = storedHash(PASSWORD)
