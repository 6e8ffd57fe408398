import { createLink, type LinkComponent, type LinkProps } from '@tanstack/react-router'
import { type AnchorHTMLAttributes, type ButtonHTMLAttributes, type MouseEvent, type Ref, useState } from 'react'
import { Icon, type IconName } from './icons.tsx'
import { tryIt } from './toast.ts'

interface Look {
  variant?: 'primary' | 'secondary' | 'ghost' | 'danger'
  icon?: IconName
}

interface ButtonProps extends Look, Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'onClick'> {
  /** While a promise of it is pending the button is busy; its error is shown as a message. */
  onClick?: (event: MouseEvent<HTMLButtonElement>) => unknown
  /** Shows that the action runs; the button keeps its focus and ignores clicks. */
  isBusy?: boolean
  ref?: Ref<HTMLButtonElement>
}

export function Button({ variant = 'secondary', icon, children, onClick, className = '', ...props }: ButtonProps) {
  const [isRunning, setIsRunning] = useState(false)
  const { isBusy = isRunning, ...rest } = props
  function click(event: MouseEvent<HTMLButtonElement>) {
    if (isBusy) return event.preventDefault()
    const result = onClick?.(event)
    if (!(result instanceof Promise)) return
    setIsRunning(true)
    void tryIt(() => result).finally(() => setIsRunning(false))
  }
  return (
    <button
      type="button"
      {...rest}
      className={`button ${variant} ${className}`}
      aria-disabled={isBusy || undefined}
      aria-busy={isBusy || undefined}
      onClick={click}
    >
      {isBusy ? <span className="spinner" aria-hidden="true" /> : icon ? <Icon name={icon} /> : null}
      {children}
    </button>
  )
}

type AnchorProps = Look & AnchorHTMLAttributes<HTMLAnchorElement> & { ref?: Ref<HTMLAnchorElement> }

function ButtonAnchor({ variant = 'secondary', icon, children, className = '', ...rest }: AnchorProps) {
  return (
    <a {...rest} className={`button ${variant} ${className}`}>
      {icon ? <Icon name={icon} /> : null}
      {children}
    </a>
  )
}

/** A link to a page that looks like a button. Typed as the router's Link. */
export const LinkButton: LinkComponent<typeof ButtonAnchor> = createLink(ButtonAnchor)

/** A button of which only the icon is shown; `label` is its name. */
export function IconButton({ label, ...rest }: Omit<ButtonProps, 'children'> & { label: string; icon: IconName }) {
  return <Button variant="ghost" {...rest} className="icon-only" aria-label={label} title={label} />
}

/** Something that a person can do: a link to a page, or what a button calls. */
export interface Action extends Look {
  label: string
  link?: LinkProps
  onSelect?: () => unknown
}

/** Several actions side by side. What is false is left out. */
export function Actions({ of }: { of: readonly (Action | false)[] }) {
  const shown = of.filter((action) => action !== false)
  return (
    <div className="actions">
      {shown.map((action) => (
        <ActionButton key={action.label} action={action} />
      ))}
    </div>
  )
}

export function ActionButton({ action: { label, link, onSelect, ...look } }: { action: Action }) {
  if (link) {
    return (
      <LinkButton {...link} {...look}>
        {label}
      </LinkButton>
    )
  }
  return (
    <Button {...look} onClick={onSelect}>
      {label}
    </Button>
  )
}
