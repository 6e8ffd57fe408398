import { type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { Button, IconButton } from './button.tsx'
import { describeError } from './describe-error.ts'
import { TextField } from './fields.tsx'
import { Form, type FormState } from './form.tsx'

interface DialogProps {
  title: string
  onClose: () => void
  /** The buttons at the bottom, the main one last. */
  actions?: ReactNode
  /** Beside the title. */
  tools?: ReactNode
  /** `wide` for code, `drawer` for one at the side of the page, which has its own URL. */
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

/** A dialog with a form; closing it asks first if something was typed. */
export function FormDialog<Values extends object>(
  props: Omit<DialogProps, 'actions'> & { form: FormState<Values>; action: string; canReset?: boolean },
) {
  const { form, action, canReset = false, children, ...dialog } = props
  const close = form.closing(dialog.onClose)
  return (
    <Dialog {...dialog} onClose={close}>
      <Form form={form} action={action} canReset={canReset} extra={<Button onClick={close}>Cancel</Button>}>
        {children}
      </Form>
    </Dialog>
  )
}

export interface Confirmation {
  title: string
  /** What happens. */
  text: ReactNode
  /** Below the text. */
  note?: ReactNode
  /** Names the action: `Delete workflow`. */
  action: string
  isHarmless?: boolean
  /** A text that the person must type first, such as the name of what is deleted. */
  typed?: string
  onConfirm: () => Promise<unknown>
}

/** Asks before something that cannot be undone. Closes when it is done; shows the error otherwise. */
export function ConfirmDialog({ onClose, ...props }: Confirmation & { onClose: () => void }) {
  const { title, text, note, action, isHarmless, typed, onConfirm } = props
  const [error, setError] = useState<unknown>()
  const [answer, setAnswer] = useState('')
  const [hasTypo, setHasTypo] = useState(false)
  async function confirm() {
    setHasTypo(typed !== undefined && answer.trim() !== typed)
    if (typed !== undefined && answer.trim() !== typed) return
    setError(undefined)
    await onConfirm().then(onClose, setError)
  }
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant={isHarmless ? 'primary' : 'danger'} onClick={confirm}>
            {action}
          </Button>
        </>
      }
    >
      <p>{text}</p>
      {note}
      {typed === undefined ? null : (
        <TextField
          label={`Type “${typed}” to confirm`}
          value={answer}
          onValue={setAnswer}
          error={hasTypo && answer.trim() !== typed ? `Type “${typed}” exactly as shown.` : undefined}
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
