import { type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { Button, IconButton } from './button.tsx'
import { describeError } from './states.tsx'
import { TextField } from './fields.tsx'

interface DialogProps {
  title: string
  onClose: () => void
  /** The buttons at the bottom, the main one last. */
  actions?: ReactNode
  /** Beside the title. */
  tools?: ReactNode
  /** `wide` for code. */
  className?: string
  children: ReactNode
}

/**
 * A modal dialog; rendered only while it is open. Escape and the close button call `onClose`. The browser returns the focus
 * to where it was.
 */
export function Dialog({ title, onClose, actions, tools, className = '', children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const element = dialog.current
    const opener = document.activeElement
    element?.showModal()
    // The first field, or the title: the browser would choose the close button.
    const field = element?.querySelector<HTMLElement>('.dialog-body :is(input:not([hidden]), textarea, select)')
    ;(field ?? element?.querySelector<HTMLElement>('h2'))?.focus()
    return () => {
      element?.close()
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      className={`dialog ${className}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
    >
      <header>
        <h2 id={id} tabIndex={-1}>
          {title}
        </h2>
        {tools}
        <IconButton icon="close" label="Close" onClick={onClose} />
      </header>
      <div className="dialog-body">{children}</div>
      {actions ? <footer>{actions}</footer> : null}
    </dialog>
  )
}

/** A dialog at the side of the page, which has its own URL: `onClose` navigates to the page behind it. */
export function Drawer(props: DialogProps) {
  return <Dialog {...props} className="drawer" />
}

interface ConfirmProps {
  title: string
  /** What happens. */
  children: ReactNode
  /** Names the action: `Delete workflow`. */
  action: string
  isDangerous?: boolean
  /** A text that the person must type first, such as the name of what is deleted. */
  typed?: string
  onConfirm: () => Promise<unknown>
  onClose: () => void
}

/** Asks before something that cannot be undone. Closes when it is done; shows the error otherwise. */
export function ConfirmDialog({
  title,
  children,
  action,
  isDangerous = true,
  typed,
  onConfirm,
  onClose,
}: ConfirmProps) {
  const [isBusy, setIsBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const [text, setText] = useState('')
  const [hasTypo, setHasTypo] = useState(false)
  async function confirm() {
    if (typed !== undefined && text.trim() !== typed) return setHasTypo(true)
    setIsBusy(true)
    setError(undefined)
    try {
      await onConfirm()
      onClose()
    } catch (reason) {
      setError(reason)
    } finally {
      setIsBusy(false)
    }
  }
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant={isDangerous ? 'danger' : 'primary'} isBusy={isBusy} onClick={() => void confirm()}>
            {action}
          </Button>
        </>
      }
    >
      {children}
      {typed === undefined ? null : (
        <TextField
          label={`Type “${typed}” to confirm`}
          value={text}
          onValue={(value) => {
            setText(value)
            setHasTypo(false)
          }}
          error={hasTypo ? `Type “${typed}” exactly as shown.` : undefined}
        />
      )}
      {error ? (
        <p className="form-error" role="alert">
          {describeError(error)}
        </p>
      ) : null}
    </Dialog>
  )
}
