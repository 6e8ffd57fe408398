import type { ServerResponse } from 'node:http'

/** What the server knows of an answer that is under way. */
interface AnswerState {
  /** What shares the bytes of unread answers, such as an organization. */
  key?: string
  /** Whether the answer is open-ended. */
  isStream?: boolean
  /** Called when the answer becomes open-ended. */
  onStream?: () => void
  /** Called when it has been sent or cut off. */
  readonly onClosed: (() => void)[]
}

const STATE = Symbol('state of an answer')

/** Returns the state of an answer, which later calls return too. */
export function answerState(res: ServerResponse & { [STATE]?: AnswerState }): AnswerState {
  return (res[STATE] ??= { onClosed: [] })
}

/**
 * Calls back once the answer has been sent or its connection was closed, however it ended; at once if that has happened. One
 * listener for all: each further listener of the event costs a short answer about 1 % of its time.
 */
export function onceClosed(res: ServerResponse, callback: () => void): void {
  if (res.closed) return callback()
  const { onClosed } = answerState(res)
  if (onClosed.push(callback) > 1) return
  res.once('close', () => {
    for (const each of onClosed) each()
  })
}
