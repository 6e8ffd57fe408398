import { RUN_JOURNAL_HEADER } from '@workflow-service/contract'
import type { OperationCall, OperationResult } from '@workflow-service/service-kit'
import type { DispatcherTransport } from './dispatcher-client.ts'

/** The operations of a dispatcher in this process. */
export type LocalDispatcher = Readonly<
  Record<'sendPayload' | 'callLookup', (call: OperationCall) => Promise<OperationResult>>
>

export function createDispatcherInProcess({ sendPayload, callLookup }: LocalDispatcher): DispatcherTransport {
  return {
    async send(delivery, signal) {
      const { status, body, headers } = await untilAborted(sendPayload(delivery), signal)
      return { status, body, journal: headers[RUN_JOURNAL_HEADER] }
    },
    lookUp: (lookup, signal) => untilAborted(callLookup(lookup), signal),
    close: async () => {},
  }
}

/** The dispatcher goes on with a call that is no longer waited for. */
export async function untilAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
