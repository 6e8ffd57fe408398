import type { ServerResponse } from 'node:http'

const streams = new WeakSet<ServerResponse>()
const STREAM_EVENT = 'workflow-service:stream'

/** Marks an answer as open-ended: the server ends it when it stops, and its request no longer counts as in flight. */
export function markAsStream(res: ServerResponse): void {
  streams.add(res)
  res.emit(STREAM_EVENT)
}

export function isStream(res: ServerResponse): boolean {
  return streams.has(res)
}

export function onStream(res: ServerResponse, listener: () => void): void {
  res.once(STREAM_EVENT, listener)
}
