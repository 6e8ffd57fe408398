import { createWriteStream, type WriteStream } from 'node:fs'
import { rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'

/** A log that outgrew this by the next start is put aside; the one put aside before goes. */
const MAX_BYTES = 20_000_000

/** A file that lines are added to. */
export interface LogFile {
  readonly stream: WriteStream
  close(): Promise<void>
}

/** Opens `NAME.log` for appending. `onFault` hears once when lines cannot be written any more; then they are dropped. */
export async function openLogFile(dir: string, name: string, onFault: (error: Error) => void): Promise<LogFile> {
  const file = join(dir, `${name}.log`)
  const found = await stat(file).catch(() => undefined)
  if (found && found.size > MAX_BYTES) await rename(file, `${file}.1`)
  const stream = createWriteStream(file, { flags: 'a' })
  stream.once('error', onFault)
  stream.on('error', () => {})
  return {
    stream,
    close: async () => {
      stream.end()
      await finished(stream).catch(() => {})
    },
  }
}
