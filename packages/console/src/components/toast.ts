import { describeError, newId } from '../api/index.ts'
import { createStore } from '../api/store.ts'

export interface Message {
  readonly id: string
  readonly text: string
  readonly kind: 'good' | 'bad'
}

/** The messages that are shown, the oldest first. */
export const messages = createStore<readonly Message[]>([])

/** A dialog that closes after a save has closed by then, and the focus is where it stays. */
const ANNOUNCED_AFTER_MS = 100

/** Says a text to screen readers, in a region that is part of the page or the dialog from its beginning. */
export function announce(text: string): void {
  setTimeout(() => {
    const region = document.querySelector('[data-announcements="true"]')
    if (region) region.textContent = region.textContent === text ? `${text}\u00A0` : text
  }, ANNOUNCED_AFTER_MS)
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
