import { useEffect, useRef } from 'react'
import { IconButton } from './button.tsx'
import { type Message, messages } from './toast.ts'

const SHOWN_MS = { good: 5_000, bad: 15_000 } as const

/** Shows the messages; once in the page. */
export function Toaster() {
  const shown = messages.use()
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    // Shown again for each message: what was shown last is above an open dialog.
    box.current?.hidePopover()
    if (shown.length > 0) box.current?.showPopover()
  }, [shown])
  return (
    <div ref={box} popover="manual" className="toasts" role="region" aria-label="Messages">
      {shown.map((message) => (
        <Toast key={message.id} {...message} />
      ))}
    </div>
  )
}

const remove = (id: string) => messages.set(messages.get().filter((message) => message.id !== id))

/** A message that stays while the pointer or the focus is on it (WCAG 2.2.1). */
function Toast({ id, text, kind }: Message) {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const timer = setInterval(() => {
      if (!box.current?.matches(':hover, :focus-within')) remove(id)
    }, SHOWN_MS[kind])
    return () => clearInterval(timer)
  }, [id, kind])
  return (
    <div ref={box} className={`toast ${kind}`} role={kind === 'bad' ? 'alert' : undefined}>
      <p>{text}</p>
      <IconButton icon="close" label="Dismiss" onClick={() => remove(id)} />
    </div>
  )
}
