import { type ReactNode, useEffect, useId, useRef } from 'react'
import { invalid } from '../api/call.ts'
import { Button, IconButton } from './button.tsx'
import { TextField } from './fields.tsx'
import { Form, type FormProps, useForm } from './form.tsx'

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
  props: Omit<DialogProps, 'actions'> & Omit<FormProps<Values>, 'extra'>,
) {
  const { form, action, canReset, isDangerous, children, ...dialog } = props
  const close = form.closing(dialog.onClose)
  return (
    <Dialog {...dialog} onClose={close}>
      <Form {...{ form, action, canReset, isDangerous }} extra={<Button onClick={close}>Cancel</Button>}>
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
  /** Said when it is done. */
  done?: string
}

/** Asks before something that cannot be undone. Closes when it is done; shows the error otherwise. */
export function ConfirmDialog({ onClose, ...props }: Confirmation & { onClose: () => void }) {
  const { title, text, note, action, isHarmless, typed, onConfirm, done = null } = props
  const form = useForm({
    values: { typed: '' },
    isTransient: true,
    savedText: done,
    save: async (values) => {
      if (typed && values.typed.trim() !== typed) throw invalid('typed', `Type “${typed}” exactly as shown.`)
      await onConfirm()
      onClose()
    },
  })
  return (
    <FormDialog title={title} form={form} action={action} isDangerous={!isHarmless} onClose={onClose}>
      <p>{text}</p>
      {note}
      {typed ? <TextField {...form.field('typed', `Type “${typed}” to confirm`)} /> : null}
    </FormDialog>
  )
}
