import { Link, type LinkProps } from '@tanstack/react-router'
import { type ButtonHTMLAttributes, type MouseEvent, useState } from 'react'
import { Icon, type IconName } from './icons.tsx'
import { useKeptFocus } from './keep-focus.ts'
import { tryIt } from './toast.ts'

/** Something that a person can do: a link to a page, or what a button calls. */
export interface Action {
  label: string
  icon?: IconName
  variant?: 'primary' | 'secondary' | 'ghost' | 'danger'
  link?: LinkProps
  /** While a promise of it is pending the button is busy; its error is shown as a message. */
  onClick?: (event: MouseEvent<HTMLButtonElement>) => unknown
  /** Said when the promise is fulfilled. */
  done?: string
}

export interface ButtonProps extends Action, Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'onClick' | 'children'> {
  /** Shows that the action runs; the button keeps its focus and ignores clicks. */
  isBusy?: boolean
  /** Shows only the icon; the label is its name. */
  isIconOnly?: boolean
}

/** A button, or with `link` a link to a page that looks like one. */
export function Button({ label, icon, variant = 'secondary', link, onClick, className = '', ...props }: ButtonProps) {
  const [isRunning, setIsRunning] = useState(false)
  const element = useKeptFocus()
  const { isBusy = isRunning, disabled, isIconOnly, done, ...rest } = props
  function click(event: MouseEvent<HTMLButtonElement>) {
    if (isBusy || disabled) return event.preventDefault()
    const result = onClick?.(event)
    if (!(result instanceof Promise)) return
    setIsRunning(true)
    void tryIt(() => result, done).finally(() => setIsRunning(false))
  }
  const classes = `button ${variant} ${isIconOnly ? 'icon-only' : ''} ${className}`
  const content = (
    <>
      {isBusy ? <span className="spinner" aria-hidden="true" /> : icon ? <Icon name={icon} /> : null}
      {isIconOnly ? null : <span className="ellipsis">{label}</span>}
    </>
  )
  if (link) {
    return (
      <Link {...link} className={classes}>
        {content}
      </Link>
    )
  }
  return (
    <button
      ref={element}
      type="button"
      aria-label={isIconOnly ? label : undefined}
      title={isIconOnly ? label : undefined}
      {...rest}
      className={classes}
      // With the attribute `disabled` it would lose the focus.
      aria-disabled={isBusy || disabled || undefined}
      aria-busy={isBusy || undefined}
      onClick={click}
    >
      {content}
    </button>
  )
}

/** A quiet button of which only the icon is shown. */
export const IconButton = (props: ButtonProps & { icon: IconName }) => <Button variant="ghost" {...props} isIconOnly />
