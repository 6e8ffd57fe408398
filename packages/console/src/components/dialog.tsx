import { useLocation, useNavigate } from '@tanstack/react-router'
import { Fragment, type ReactNode, useEffect, useId, useLayoutEffect, useRef } from 'react'
import { invalid, newId, refresh } from '../api/index.ts'
import { createStore } from '../api/store.ts'
import { Button, IconButton } from './button.tsx'
import { TextField } from './fields.tsx'
import { Form, type FormOptions, type FormProps, type FormState, useForm } from './form.tsx'
import { Toaster } from './toaster.tsx'

interface DialogProps {
  title: string
  onClose: () => void
  /** The buttons at the bottom, the main one last. */
  actions?: ReactNode
  /** Beside the title. */
  tools?: ReactNode
  /** The id of the element that says what the dialog is for: the focus begins below it. */
  describedBy?: string | undefined
  /** `wide` for code, `drawer` for one at the side of the page, which has its own URL. */
  className?: string
  children: ReactNode
}

/**
 * A modal dialog; rendered only while it is open. Escape and the close button call `onClose`. The browser returns the
 * focus to where it was.
 */
export function Dialog({ title, onClose, actions, tools, describedBy, className = '', children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const focusedAtCancel = useRef<Element>(null)
  const id = useId()
  // Closed while it is still part of the page: only then the browser returns the focus.
  useLayoutEffect(() => {
    const element = dialog.current
    element?.showModal()
    // The first field, or the title: the browser would choose the close button.
    const field = element?.querySelector<HTMLElement>('.dialog-body :is(input:not([hidden]), textarea, select)')
    ;(field ?? element?.querySelector<HTMLElement>('h2'))?.focus()
    return () => {
      element?.close()
      // Where the focus was is gone, such as the button of a row that is deleted, or the page of the dialog.
      const { activeElement: focused, body } = document
      if (focused === body || element?.contains(focused)) document.querySelector('h1')?.focus({ preventScroll: true })
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      className={`dialog ${className}`}
      aria-labelledby={id}
      aria-describedby={describedBy}
      onCancel={(event) => {
        event.preventDefault()
        focusedAtCancel.current = document.activeElement
        onClose()
      }}
      // Chromium closes it nevertheless when Escape is pressed again, while the dialog may ask about what was typed.
      onClose={({ currentTarget }) => {
        currentTarget.showModal()
        if (focusedAtCancel.current instanceof HTMLElement) focusedAtCancel.current.focus()
      }}
    >
      <header>
        <h2 id={id} tabIndex={-1}>
          {title}
        </h2>
        {tools}
        <IconButton icon="close" label="Close" onClick={() => onClose()} />
      </header>
      <div className="dialog-body">{children}</div>
      {actions ? <footer>{actions}</footer> : null}
      <Toaster />
    </dialog>
  )
}

interface FormDialogProps<Values extends object, Saved>
  extends Omit<DialogProps, 'actions' | 'describedBy' | 'children'>, FormOptions<Values>, Omit<FormProps, 'extra'> {
  /** What the form is for, above its fields. */
  text?: ReactNode
  fields?: (form: FormState<Values>) => ReactNode
  save: (values: Values, version: string) => Promise<Saved>
}

/** A dialog with a form; closing it asks first if something was typed. */
export function FormDialog<Values extends object, Saved>(props: FormDialogProps<Values, Saved>) {
  const { title, tools, className, onClose, action, canReset, variant, text, fields, ...options } = props
  const form = useForm({ ...options, isDialog: true })
  const close = form.closing(onClose)
  const id = useId()
  return (
    <Dialog {...{ title, tools, className }} describedBy={text ? id : undefined} onClose={close}>
      <Form {...{ form, action, canReset, variant }} extra={<Button label="Cancel" onClick={close} />}>
        {text ? <p id={id}>{text}</p> : null}
        {fields?.(form)}
      </Form>
    </Dialog>
  )
}

const dialogs = createStore<readonly ReactNode[]>([])

/** Shows a dialog above the page until it calls `close`, or the person leaves the page. */
export function openDialog(render: (close: () => void) => ReactNode): void {
  const close = () => dialogs.set(dialogs.get().filter((dialog) => dialog !== opened))
  const opened = <Fragment key={newId()}>{render(close)}</Fragment>
  dialogs.set([...dialogs.get(), opened])
}

/** Shows the open dialogs; once in the layout. */
export function OpenDialogs() {
  const path = useLocation({ select: ({ pathname }) => pathname })
  useEffect(() => (path ? () => dialogs.set([]) : undefined), [path])
  return dialogs.use()
}

/** Shows a dialog with a form until it is saved. `onSaved` is called when it is closed. */
export function openForm<Values extends object, Saved>({
  onSaved,
  ...props
}: Omit<FormDialogProps<Values, Saved>, 'onClose'> & { onSaved?: (saved: Saved) => unknown }): void {
  openDialog((close) => {
    const save = async (values: Values, version: string) => {
      const saved = await props.save(values, version)
      close()
      await onSaved?.(saved)
      return saved
    }
    return <FormDialog {...props} save={save} onClose={close} />
  })
}

/** Shows something once, until the person says that it is done with. */
export function showOnce({ done, ...props }: Omit<DialogProps, 'onClose' | 'actions'> & { done: string }): void {
  openDialog((close) => <Dialog {...props} onClose={close} actions={<Button label={done} onClick={close} />} />)
}

interface Confirmation extends Pick<DialogProps, 'title'>, Pick<FormProps, 'action'> {
  /** What happens. */
  text: ReactNode
  isHarmless?: boolean
  /** A text that the person must type first, such as the name of what is deleted. */
  typed?: string
  onConfirm: () => Promise<unknown>
  /** Said when it is done. */
  done?: string
}

/** A text as the page shows it: white space of any length is one space. */
const asShown = (text: string) => text.replaceAll(/\s+/g, ' ').trim()

/** Asks before something that cannot be undone. */
export function askToConfirm({ isHarmless, typed, onConfirm, done, ...texts }: Confirmation): void {
  openForm({
    ...texts,
    variant: isHarmless ? 'primary' : 'danger',
    isTransient: true,
    savedText: done ?? null,
    values: { typed: '' },
    async save(values) {
      if (typed && asShown(values.typed) !== asShown(typed)) throw invalid('typed', `Type “${typed}” exactly as shown.`)
      await onConfirm()
    },
    fields: (form) => (typed ? <TextField {...form.field('typed', `Type “${typed}” to confirm`)} /> : null),
  })
}

/** Asks for the name before it deletes what the page shows, then opens the list. */
export function useDeletion(): (
  deletion: Pick<Confirmation, 'text' | 'action'> & { name: string; remove: () => Promise<unknown>; list: string },
) => void {
  const navigate = useNavigate()
  return ({ name, remove, list, ...texts }) =>
    askToConfirm({
      ...texts,
      title: `Delete ${name}`,
      typed: name,
      async onConfirm() {
        await remove()
        // Left before everything is read again: the page would read what does not exist any more.
        await navigate({ to: list, ignoreBlocker: true })
        void refresh()
      },
      done: `${name} is deleted.`,
    })
}
