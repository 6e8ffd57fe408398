import { type Answer, startCustomerEndpoint } from '@workflow-service/testkit'

/** A payload, and when its body was complete, in ms since 1970. */
export interface Arrival {
  readonly path: string
  /** The payload's only field. */
  readonly text: string
  readonly at: number
}

/** The endpoints of all customers, in this process. */
export type Receiver = Awaited<ReturnType<typeof startReceiver>>

/** Starts endpoints that keep a path, a text and a time of each payload, so that hours of them fit in memory. */
export async function startReceiver(answer: (arrival: Arrival) => Answer = answerByPath) {
  const arrivals: Arrival[] = []
  const { url, close } = await startCustomerEndpoint({
    keepsRequests: false,
    answer({ path, json, receivedAt }) {
      const arrival = { path, text: (json as { text: string }).text, at: receivedAt }
      arrivals.push(arrival)
      return answer(arrival)
    },
  })
  return { url, close, arrivals }
}

/**
 * Answers by the last part of the path: `slow` after 1 to 3 s; `broken` with 500, 404, a reset connection or, rarely,
 * never; everything else with 204 within 100 ms.
 */
function answerByPath({ path, text }: Pick<Arrival, 'path' | 'text'>): Answer {
  const chance = hash(text) % 100
  if (path.endsWith('/slow')) return { status: 204, delayMs: 1_000 + 20 * chance }
  if (!path.endsWith('/broken')) return { status: 204, delayMs: chance }
  if (chance >= 15) return { status: chance >= 25 ? 500 : 404, delayMs: chance }
  return chance >= 1 ? 'reset' : 'hang'
}

/** The same number for the same text. */
export function hash(text: string): number {
  let value = 7
  for (const letter of text) value = (value * 31 + letter.charCodeAt(0)) % 10_007
  return value
}
