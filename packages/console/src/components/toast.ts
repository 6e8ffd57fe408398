import { describeError, newId } from '../api/index.ts'
import { createStore } from '../api/store.ts'

export interface Message {
  readonly id: string
  readonly text: string
  readonly kind: 'good' | 'bad'
}

/** The messages that are shown, the oldest first. */
export const messages = createStore<readonly Message[]>([])

/** Says a text to screen readers. The region is part of the page from the beginning (`main.tsx`). */
export function announce(text: string): void {
  const region = document.getElementById('announcements')
  if (region) region.textContent = region.textContent === text ? `${text}\u00A0` : text
}

/** Says for a few seconds that something was done, or what went wrong. */
export function toast(text: string, kind: Message['kind'] = 'good'): void {
  messages.set([...messages.get().slice(-2), { id: newId(), text, kind }])
  if (kind === 'good') announce(text)
}

/** Says what became of a test notice. */
export function reportTest({ error }: { error: string | null }): void {
  if (error === null) toast('The test notice was sent.')
  else toast(`The test notice was not sent. ${error}`, 'bad')
}

/** Runs an action outside of a form; an error is shown as a message, and `done` otherwise. */
export async function tryIt(action: () => unknown, done?: string): Promise<void> {
  try {
    await action()
    if (done) toast(done)
  } catch (error) {
    toast(describeError(error), 'bad')
  }
}
