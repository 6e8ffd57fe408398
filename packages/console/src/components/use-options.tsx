import { type KeyboardEvent, type ReactNode, useId, useState } from 'react'

/** Whether a key is one of an input method. In Safari, only the code of the Enter that ends a composition says so. */
export const isComposing = ({ nativeEvent, keyCode }: KeyboardEvent) => nativeEvent.isComposing || keyCode === 229

/**
 * The options below a text field that keeps the focus, by the ARIA pattern of a combobox. With `initial` -1, none is
 * marked until an arrow key is pressed, so that other keys keep their meaning in a text.
 */
export function useOptions<Option>(
  options: readonly Option[],
  onChoose: (option: Option) => void,
  initial: 0 | -1 = 0,
) {
  const id = useId()
  const [active, setActive] = useState<number>(initial)
  const chosen = Math.min(active, options.length - 1)

  /** Moves with the arrow keys and chooses with Enter, or with the keys given. Returns false for every other key. */
  function onKey(event: KeyboardEvent, choosing: readonly string[] = ['Enter']): boolean {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    const option = options[chosen]
    if (options.length === 0) return false
    if (step) setActive((Math.max(chosen, step < 0 ? 0 : -1) + step + options.length) % options.length)
    else if (option && choosing.includes(event.key) && !isComposing(event)) onChoose(option)
    else return false
    event.preventDefault()
    return true
  }

  const items = (keyOf: (option: Option) => string, content: (option: Option) => ReactNode) =>
    options.map((option, index) => (
      // The field has the focus and handles the keys.
      // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
      <li
        key={keyOf(option)}
        id={`${id}-${index}`}
        role="option"
        aria-selected={index === chosen}
        className="menu-item"
        ref={index === chosen ? (item) => item?.scrollIntoView({ block: 'nearest' }) : undefined}
        // Keeps the focus in the field.
        onPointerDown={(event) => event.preventDefault()}
        onClick={() => onChoose(option)}
        onPointerMove={initial === 0 ? () => setActive(index) : undefined}
      >
        {content(option)}
      </li>
    ))

  return {
    id,
    onKey,
    items,
    /** The marked option. */
    chosen: options[chosen],
    /** Marks the first option again, or none. */
    restart: () => setActive(initial),
    /** What the text field needs. */
    aria: {
      'aria-controls': options.length > 0 ? id : undefined,
      'aria-activedescendant': options[chosen] ? `${id}-${chosen}` : undefined,
    },
  }
}
