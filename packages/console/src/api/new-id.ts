/** Makes a UUIDv7 (RFC 9562): lists are in the order of ids, and the caller chooses the ids of new things. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  const time = Date.now().toString(16).padStart(12, '0')
  const random = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  const variant = (((bytes[8] ?? 0) & 0x3f) | 0x80).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(13, 16)}-${variant}${random.slice(18, 20)}-${random.slice(20)}`
}
