import { createLink, type LinkComponent } from '@tanstack/react-router'
import type { AnchorHTMLAttributes, ButtonHTMLAttributes, Ref } from 'react'
import { Icon, type IconName } from './icons.tsx'

type Variant = 'primary' | 'secondary' | 'ghost' | 'danger'

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  variant?: Variant
  icon?: IconName
  /** Shows that the action runs; the button keeps its focus and ignores clicks. */
  isBusy?: boolean
  ref?: Ref<HTMLButtonElement>
}

export function Button({ variant = 'secondary', icon, isBusy, children, onClick, className, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      className={`button ${variant} ${className ?? ''}`}
      aria-disabled={isBusy || undefined}
      aria-busy={isBusy || undefined}
      onClick={(event) => (isBusy ? event.preventDefault() : onClick?.(event))}
    >
      {isBusy ? <span className="spinner" aria-hidden="true" /> : icon ? <Icon name={icon} /> : null}
      {children}
    </button>
  )
}

interface AnchorProps extends AnchorHTMLAttributes<HTMLAnchorElement> {
  variant?: Variant
  icon?: IconName
  ref?: Ref<HTMLAnchorElement>
}

function ButtonAnchor({ variant = 'secondary', icon, children, className, ...rest }: AnchorProps) {
  return (
    <a {...rest} className={`button ${variant} ${className ?? ''}`}>
      {icon ? <Icon name={icon} /> : null}
      {children}
    </a>
  )
}

/** A link to a page that looks like a button. Typed as the router's Link. */
export const LinkButton: LinkComponent<typeof ButtonAnchor> = createLink(ButtonAnchor)

/** A button of which only the icon is shown; `label` is its name. */
export function IconButton({
  label,
  icon,
  ...rest
}: Omit<ButtonProps, 'children'> & { label: string; icon: IconName }) {
  return <Button variant="ghost" {...rest} icon={icon} className="icon-only" aria-label={label} title={label} />
}
