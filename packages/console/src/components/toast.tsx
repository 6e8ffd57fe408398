import { useEffect, useRef, useSyncExternalStore } from 'react'
import { announce } from './announce.ts'
import { IconButton } from './button.tsx'
import { describeError } from './states.tsx'

const SHOWN_MS = { good: 5_000, bad: 15_000 } as const

interface Message {
  readonly id: number
  readonly text: string
  readonly kind: keyof typeof SHOWN_MS
}

let messages: readonly Message[] = []
let lastId = 0
const listeners = new Set<() => void>()

function setMessages(changed: readonly Message[]) {
  messages = changed
  for (const listener of listeners) listener()
}

/** Says for a few seconds that something was done, or what went wrong. */
export function toast(text: string, kind: Message['kind'] = 'good'): void {
  lastId += 1
  setMessages([...messages.slice(-2), { id: lastId, text, kind }])
  if (kind === 'good') announce(text)
}

/** Runs an action outside of a form; an error is shown as a message. */
export async function tryIt(action: () => Promise<unknown>): Promise<void> {
  try {
    await action()
  } catch (error) {
    toast(describeError(error), 'bad')
  }
}

/** The place of the messages; once in the page. */
export function Toaster() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => messages,
  )
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    // Shown again for each message: what was shown last is above an open dialog.
    place.current?.hidePopover()
    if (shown.length > 0) place.current?.showPopover()
  }, [shown])
  return (
    <div ref={place} popover="manual" className="toasts" role="region" aria-label="Messages">
      {shown.map((message) => (
        <Toast key={message.id} message={message} />
      ))}
    </div>
  )
}

/** A message that stays while the pointer or the focus is on it (WCAG 2.2.1). */
function Toast({ message: { id, text, kind } }: { message: Message }) {
  const box = useRef<HTMLDivElement>(null)
  const remove = () => setMessages(messages.filter((message) => message.id !== id))
  useEffect(() => {
    const timer = setInterval(() => {
      if (!box.current?.matches(':hover, :focus-within')) setMessages(messages.filter((message) => message.id !== id))
    }, SHOWN_MS[kind])
    return () => clearInterval(timer)
  }, [id, kind])
  return (
    <div ref={box} className={`toast ${kind}`} role={kind === 'bad' ? 'alert' : undefined}>
      <p>{text}</p>
      <IconButton icon="close" label="Dismiss" onClick={remove} />
    </div>
  )
}
