import { Link } from '@tanstack/react-router'
import { WORKFLOW_TEXT_MAX_LENGTH } from '@workflow-service/contract/limits'
import { type KeyboardEvent, useId, useRef, useState } from 'react'
import { useRead } from '../../api/queries.ts'
import { TextAreaField } from '../../components/fields.tsx'

const MAX_SUGGESTIONS = 6
const MIN_TYPED = 2

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll(/\s+/g, '\\s+')

/** Whether the text names the source as whole words, regardless of case: nearly the rule of the agent, for what is typed. */
function names(text: string, name: string): boolean {
  return new RegExp(`(?<![\\p{L}\\p{N}_])${escaped(name)}(?![\\p{L}\\p{N}_])`, 'iu').test(text)
}

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

/** The agent's task. Completes the names of webhook sources, and links those that it names. */
export function DescriptionField(props: {
  value: string
  onValue: (value: string) => void
  error: string | undefined
}) {
  const sources = useRead('listWebhookSources').data?.data ?? []
  const area = useRef<HTMLTextAreaElement>(null)
  const listId = useId()
  const [before, setBefore] = useState('')
  const [selected, setSelected] = useState(0)
  const suggestions = suggest(
    before,
    sources.map(({ name }) => name),
  ).slice(0, MAX_SUGGESTIONS)
  const named = sources.filter(({ name }) => names(props.value, name))

  const track = () => {
    const { selectionStart = 0, selectionEnd = 0, value = '' } = area.current ?? {}
    setBefore(selectionStart === selectionEnd ? value.slice(0, selectionStart) : '')
    setSelected(0)
  }
  const complete = ({ name, typed }: { name: string; typed: number }) => {
    const element = area.current
    if (!element) return
    const caret = element.selectionStart
    props.onValue(`${element.value.slice(0, caret - typed)}${name}${element.value.slice(caret)}`)
    setBefore('')
    requestAnimationFrame(() => {
      element.focus()
      element.setSelectionRange(caret - typed + name.length, caret - typed + name.length)
    })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const suggestion = suggestions[selected]
    if (!suggestion || event.metaKey || event.ctrlKey || event.altKey) return
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step) setSelected((selected + step + suggestions.length) % suggestions.length)
    else if (event.key === 'Escape') setBefore('')
    else if (event.key === 'Enter' || (event.key === 'Tab' && !event.shiftKey)) complete(suggestion)
    else return
    event.preventDefault()
  }
  return (
    <div className="completing">
      <TextAreaField
        ref={area}
        label="Description"
        rows={10}
        maxLength={WORKFLOW_TEXT_MAX_LENGTH}
        placeholder="An order came in. Send it to Order intake. If the customer is new, send it to CRM as well."
        hint="The agent’s task in plain words. It sends only to the webhook sources that the text names; their names are completed as you type."
        aria-autocomplete="list"
        aria-controls={suggestions.length > 0 ? listId : undefined}
        aria-activedescendant={suggestions.length > 0 ? `${listId}-${selected}` : undefined}
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
      {suggestions.length > 0 ? (
        <ul className="menu suggestions" role="listbox" id={listId} aria-label="Webhook sources">
          {suggestions.map((suggestion, index) => (
            // The keyboard chooses with the arrow keys in the text.
            // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
            <li
              key={suggestion.name}
              id={`${listId}-${index}`}
              role="option"
              tabIndex={-1}
              aria-selected={index === selected}
              className="menu-item"
              data-highlighted={index === selected || undefined}
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => complete(suggestion)}
            >
              {suggestion.name}
            </li>
          ))}
        </ul>
      ) : null}
      {named.length > 0 ? (
        <p className="row named">
          <span className="muted">Sends to</span>
          {named.map(({ id, name }) => (
            <Link key={id} to="/sources/$sourceId" params={{ sourceId: id }}>
              {name}
            </Link>
          ))}
        </p>
      ) : null}
    </div>
  )
}
