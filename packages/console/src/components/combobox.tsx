import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'
import { Field } from './fields.tsx'
import { placePopup } from './place-popup.ts'

interface Option {
  value: string
  label: string
  detail?: string
}

interface ComboboxProps {
  label: string
  options: readonly Option[]
  value: string | null
  onValue: (value: string | null) => void
  placeholder?: string
  hint?: string
  error?: string | undefined
  isLabelHidden?: boolean
  /** Called with what is typed, when the options come from the server. */
  onSearch?: (text: string) => void
}

/** At most as many options are shown; more are found by typing. */
const SHOWN = 50

/** A field that finds one of many options while typing, by the ARIA pattern. Leaving it without a choice keeps the value. */
export function Combobox({ label, options, value, onValue, placeholder, onSearch, ...field }: ComboboxProps) {
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  const popup = useRef<HTMLUListElement>(null)
  const [text, setText] = useState<string>()
  const [active, setActive] = useState(0)
  const isOpen = text !== undefined
  const found = options
    .filter((option) => `${option.label} ${option.detail ?? ''}`.toLowerCase().includes((text ?? '').toLowerCase()))
    .slice(0, SHOWN)
  const chosen = Math.min(active, found.length - 1)
  useEffect(() => {
    if (!isOpen) return
    const list = popup.current
    list?.showPopover()
    if (list && input.current) placePopup(list, input.current, 'start')
    return () => list?.hidePopover()
  }, [isOpen])

  const open = () => {
    setText((before) => before ?? '')
    setActive(0)
  }
  const choose = (option: Option | undefined) => {
    setText(undefined)
    if (option) onValue(option.value)
  }
  function onKeyDown(event: KeyboardEvent) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step && isOpen) setActive((chosen + step + found.length) % Math.max(found.length, 1))
    else if (step) open()
    else if (event.key === 'Enter' && isOpen && !event.nativeEvent.isComposing) choose(found[chosen])
    else if (event.key === 'Escape' && isOpen) setText(undefined)
    else return
    event.preventDefault()
    event.stopPropagation()
  }

  return (
    <Field label={label} {...field}>
      {(control) => (
        <>
          <input
            ref={input}
            {...control}
            type="text"
            role="combobox"
            className="input"
            autoComplete="off"
            placeholder={placeholder}
            aria-expanded={isOpen}
            aria-controls={`${id}-list`}
            aria-autocomplete="list"
            aria-activedescendant={isOpen && found.length > 0 ? `${id}-${chosen}` : undefined}
            value={text ?? options.find((option) => option.value === value)?.label ?? ''}
            onChange={(event) => {
              setText(event.target.value)
              onSearch?.(event.target.value)
              setActive(0)
            }}
            onClick={open}
            onKeyDown={onKeyDown}
            onBlur={() => setText(undefined)}
          />
          <ul ref={popup} id={`${id}-list`} popover="manual" role="listbox" aria-label="Choices" className="menu">
            {isOpen
              ? found.map((option, index) => (
                  // The field has the focus and handles the keys.
                  // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
                  <li
                    key={option.value}
                    id={`${id}-${index}`}
                    role="option"
                    aria-selected={index === chosen}
                    className="menu-item"
                    ref={index === chosen ? (item) => item?.scrollIntoView({ block: 'nearest' }) : undefined}
                    // Keeps the focus in the field.
                    onPointerDown={(event) => event.preventDefault()}
                    onClick={() => choose(option)}
                    onPointerMove={() => setActive(index)}
                  >
                    <span>{option.label}</span>
                    {option.detail ? <span className="muted">{option.detail}</span> : null}
                  </li>
                ))
              : null}
            {isOpen && found.length === 0 ? <li className="menu-empty">Nothing found.</li> : null}
          </ul>
        </>
      )}
    </Field>
  )
}
