import { type KeyboardEvent, type ReactNode, useId, useRef } from 'react'
import type { Action } from './button.tsx'
import { Icon } from './icons.tsx'
import { placePopup } from './place-popup.ts'
import { fold } from './text.ts'
import { tryIt } from './toast.ts'

interface MenuProps {
  /** The name of the button. */
  label: string
  /** What the button shows; three dots by default. */
  trigger?: ReactNode
  triggerClass?: string
  /** What is false is left out. A dangerous one is below a line. */
  items: readonly (Action | false)[]
}

/** A button with a menu of actions, by the ARIA pattern: arrow keys, Home, End and first letters move the focus. */
export function Menu({ label, trigger, triggerClass = 'button ghost icon-only', ...props }: MenuProps) {
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const popup = useRef<HTMLDivElement>(null)
  const items = () => [...(popup.current?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? [])]

  function onKeyDown(event: KeyboardEvent) {
    const all = items()
    const at = all.findIndex((item) => item === document.activeElement)
    const step = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key]
    if (step !== undefined) all.at(step % all.length)?.focus()
    else if (event.key === 'Tab') popup.current?.hidePopover()
    else if (/^\S$/.test(event.key)) {
      const next = [...all.slice(at + 1), ...all.slice(0, at + 1)]
      next.find((item) => fold(item.textContent).startsWith(fold(event.key)))?.focus()
    } else return
    if (event.key !== 'Tab') event.preventDefault()
    event.stopPropagation()
  }

  return (
    <>
      <button
        ref={button}
        type="button"
        className={triggerClass}
        aria-label={label}
        aria-haspopup="menu"
        title={trigger ? undefined : label}
        popoverTarget={id}
        onKeyDown={(event) => {
          if (event.key !== 'ArrowDown') return
          event.preventDefault()
          popup.current?.showPopover()
        }}
      >
        {trigger ?? <Icon name="more" />}
      </button>
      <div
        ref={popup}
        id={id}
        popover="auto"
        role="menu"
        tabIndex={-1}
        aria-label={label}
        className="menu"
        onKeyDown={onKeyDown}
        onBeforeToggle={(event) => {
          if (event.newState === 'closed') return
          // Before the next frame: the size is known only when it is shown.
          requestAnimationFrame(() => {
            if (popup.current && button.current) placePopup(popup.current, button.current, 'end')
            items()[0]?.focus()
          })
        }}
      >
        {props.items
          .filter((item) => item !== false)
          .map((item) => (
            <button
              key={item.label}
              type="button"
              role="menuitem"
              tabIndex={-1}
              className={`menu-item ${item.variant ?? ''}`}
              onClick={(event) => {
                popup.current?.hidePopover()
                void tryIt(() => item.onClick?.(event), item.done)
              }}
            >
              {item.icon ? <Icon name={item.icon} /> : null}
              {item.label}
            </button>
          ))}
      </div>
    </>
  )
}
