import { type ComponentProps, type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { describeError } from '../api/index.ts'
import { TextField } from './fields.tsx'
import { placePopup } from './place-popup.ts'
import { fold } from './text.ts'
import { announce } from './toast.ts'
import { useOptions } from './use-options.tsx'

export interface ComboboxProps extends Pick<
  ComponentProps<typeof TextField>,
  'label' | 'placeholder' | 'isLabelHidden'
> {
  options: readonly { value: string; label: string }[]
  /** Why there are no options, if reading them failed. */
  problem?: Error | null
  value: string | null
  onValue: (value: string) => unknown
  /** Called with what is typed, and with an empty text afterwards, when the options come from the server. */
  onSearch?: (text: string) => void
}

/** At most as many options are shown; more are found by typing. */
export const SHOWN = 50
const SERVER_MS = 500

/** A field that finds one of many options while typing. Leaving it without a choice keeps the value. */
export function Combobox({ options, problem, value, onValue, onSearch, ...field }: ComboboxProps) {
  const input = useRef<HTMLInputElement>(null)
  const popup = useRef<HTMLUListElement>(null)
  const [text, setText] = useState<string>()
  const isOpen = text !== undefined
  const wanted = fold(text?.trim() ?? '')
  const found = options.filter(({ label }) => fold(label).includes(wanted)).slice(0, SHOWN)
  const close = () => {
    setText(undefined)
    onSearch?.('')
  }
  const { id, onKey, items, restart, aria } = useOptions(isOpen ? found : [], (option) => {
    close()
    onValue(option.value)
  })
  useEffect(() => {
    if (!isOpen) return
    const list = popup.current
    list?.showPopover()
    if (list && input.current) placePopup(list, input.current, 'start')
    return () => list?.hidePopover()
  }, [isOpen])

  const nothing = isOpen && found.length === 0 ? (problem ? describeError(problem) : 'Nothing found.') : undefined
  useEffect(() => {
    // Options from the server follow what is typed.
    const timer = setTimeout(() => nothing && announce(nothing), SERVER_MS)
    return () => clearTimeout(timer)
  }, [nothing])

  const open = (typed: string) => {
    setText(typed)
    restart()
  }
  function onKeyDown(event: KeyboardEvent) {
    if (!onKey(event)) {
      if (event.key === 'ArrowDown' && !isOpen) open('')
      else if (event.key === 'Escape' && isOpen) close()
      else return
      event.preventDefault()
    }
    event.stopPropagation()
  }
  return (
    <>
      <TextField
        {...field}
        ref={input}
        role="combobox"
        aria-expanded={isOpen}
        aria-autocomplete="list"
        {...aria}
        aria-controls={id}
        value={text ?? options.find((option) => option.value === value)?.label ?? ''}
        onValue={(typed) => {
          open(typed)
          onSearch?.(typed)
        }}
        onClick={() => open(text ?? '')}
        onKeyDown={onKeyDown}
        onBlur={close}
      />
      <ul ref={popup} id={id} popover="manual" role="listbox" aria-label="Choices" className="menu">
        {items(
          (option) => option.value,
          (option) => option.label,
        )}
        {nothing ? <li className="menu-empty">{nothing}</li> : null}
      </ul>
    </>
  )
}
