import { WORKFLOW_TEXT_MAX_LENGTH } from '@workflow-service/contract/limits'
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { type Bound, TextAreaField } from '../../components/fields.tsx'
import { placePopup } from '../../components/place-popup.ts'
import { ThingLink } from '../../components/thing-link.tsx'
import { useOptions } from '../../components/use-options.tsx'

const MAX_SUGGESTIONS = 6
const MIN_TYPED = 2

/** The sources whose names begin with what is typed before the caret, with the number of typed characters. */
function suggest(before: string, all: readonly string[]): { name: string; typed: number }[] {
  const lower = before.slice(-100).toLowerCase()
  return all.flatMap((name) => {
    for (let typed = Math.min(name.length - 1, lower.length); typed >= MIN_TYPED; typed -= 1) {
      const isWordStart = !/[\p{L}\p{N}_]/u.test(lower.at(-typed - 1) ?? ' ')
      if (isWordStart && name.toLowerCase().startsWith(lower.slice(-typed))) return [{ name, typed }]
    }
    return []
  })
}

interface DescriptionFieldProps extends Bound<string> {
  sources: readonly { id: string; name: string }[]
  lookups: readonly { name: string }[]
  /** The sources that the text names. */
  named: DescriptionFieldProps['sources']
}

/**
 * The agent's task. Completes the names of webhook sources and look-ups as they are typed, and links the sources that
 * it names.
 */
export function DescriptionField({ sources, lookups, named, ...props }: DescriptionFieldProps) {
  const area = useRef<HTMLTextAreaElement>(null)
  const popup = useRef<HTMLUListElement>(null)
  const [before, setBefore] = useState('')
  const allNames = [...sources, ...lookups].map(({ name }) => name)
  const found = suggest(before, allNames).slice(0, MAX_SUGGESTIONS)
  const options = useOptions(
    found,
    ({ name, typed }) => {
      const element = area.current
      if (!element) return
      const start = element.selectionStart - typed
      props.onValue(element.value.slice(0, start) + name + element.value.slice(start + typed))
      setBefore('')
      requestAnimationFrame(() => {
        element.focus()
        element.setSelectionRange(start + name.length, start + name.length)
      })
    },
    -1,
  )
  const isOpen = found.length > 0
  useEffect(() => {
    const list = popup.current
    if (!isOpen || !list) return
    list.showPopover()
    return () => list.hidePopover()
  }, [isOpen])
  // After each change of the text: the field grows with it.
  useEffect(() => {
    if (isOpen && popup.current && area.current) placePopup(popup.current, area.current, 'start')
  })

  const track = () => {
    const { selectionStart = 0, selectionEnd = 0, value = '' } = area.current ?? {}
    setBefore(selectionStart === selectionEnd ? value.slice(0, selectionStart) : '')
    options.restart()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (!isOpen || event.metaKey || event.ctrlKey || event.altKey || event.shiftKey) return
    if (options.onKey(event, ['Enter', 'Tab']) || event.key !== 'Escape') return
    setBefore('')
    event.preventDefault()
  }
  return (
    <div className="stack">
      <TextAreaField
        ref={area}
        rows={3}
        maxLength={WORKFLOW_TEXT_MAX_LENGTH}
        placeholder="Send every order to Shop orders."
        aria-autocomplete="list"
        {...options.aria}
        onKeyDown={onKeyDown}
        onKeyUp={(event) => (['ArrowLeft', 'ArrowRight', 'Home', 'End'].includes(event.key) ? track() : undefined)}
        onClick={track}
        onBlur={() => setBefore('')}
        {...props}
        onValue={(value) => {
          props.onValue(value)
          track()
        }}
      />
      <ul
        ref={popup}
        id={options.id}
        popover="manual"
        role="listbox"
        aria-label="Webhook sources and look-ups"
        className="menu"
      >
        {options.items(
          ({ name }) => name,
          ({ name }) => name,
        )}
      </ul>
      {named.length > 0 ? (
        <p className="row named">
          <span className="muted">Sends to:</span>
          {named.map(({ id, name }) => (
            <ThingLink key={id} kind="webhook_source" id={id} name={name} />
          ))}
        </p>
      ) : null}
    </div>
  )
}
