import { useEffect, useId, useLayoutEffect, useRef } from 'react'
import { createStore } from '../api/store.ts'
import { IconButton } from './button.tsx'
import { type Message, messages } from './toast.ts'

const SHOWN_MS = { good: 5_000, bad: 15_000 } as const

const toasters = createStore<readonly string[]>([])
const NONE: readonly Message[] = []

/**
 * Shows the messages and says the announcements: in the page, and in each dialog, since a modal one makes everything
 * outside of it inert. Only the last one does so.
 */
export function Toaster() {
  const id = useId()
  useLayoutEffect(() => {
    toasters.set([...toasters.get(), id])
    return () => toasters.set(toasters.get().filter((each) => each !== id))
  }, [id])
  const isLast = toasters.use().at(-1) === id
  const all = messages.use()
  const shown = isLast ? all : NONE
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    box.current?.hidePopover()
    if (shown.length > 0) box.current?.showPopover()
  }, [shown])
  return (
    <>
      <div ref={box} popover="manual" className="toasts" role="region" aria-label="Messages">
        {shown.map((message) => (
          <Toast key={message.id} {...message} />
        ))}
      </div>
      <div className="visually-hidden" aria-live="polite" data-announcements={isLast} />
    </>
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
