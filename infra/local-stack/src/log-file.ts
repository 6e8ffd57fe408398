import { createWriteStream } from 'node:fs'
import { rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'

/** A log file larger than this is renamed to `NAME.log.1` at the next start; an older `NAME.log.1` is overwritten. */
const MAX_BYTES = 20_000_000

/** Opens `NAME.log` for appending. Calls `onError` at the first failed write; later lines are dropped. */
export async function openLogFile(dir: string, name: string, onError: (error: Error) => void) {
  const path = join(dir, `${name}.log`)
  const existing = await stat(path).catch(() => undefined)
  if (existing && existing.size > MAX_BYTES) await rename(path, `${path}.1`)
  const stream = createWriteStream(path, { flags: 'a', mode: 0o600 })
  stream.once('error', onError)
  // An `error` event without a listener would end the process.
  stream.on('error', () => {})
  return {
    stream,
    close: async () => {
      stream.end()
      await finished(stream).catch(() => {})
    },
  }
}
