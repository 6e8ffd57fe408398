import { useLocation } from '@tanstack/react-router'
import { Fragment, type ReactNode, useEffect } from 'react'
import { newId } from '../api/new-id.ts'
import { createStore } from '../api/store.ts'
import { ConfirmDialog, type Confirmation } from './dialog.tsx'

interface Opened {
  readonly id: string
  readonly content: ReactNode
}

const dialogs = createStore<readonly Opened[]>([])

/** Shows a dialog above the page until it calls `close`, or the person leaves the page. */
export function openDialog(render: (close: () => void) => ReactNode): void {
  const id = newId()
  const close = () => dialogs.set(dialogs.get().filter((dialog) => dialog.id !== id))
  dialogs.set([...dialogs.get(), { id, content: render(close) }])
}

/** Asks before something that cannot be undone. */
export function askToConfirm(confirmation: Confirmation): void {
  openDialog((close) => <ConfirmDialog {...confirmation} onClose={close} />)
}

/** Shows the open dialogs; once in the layout. */
export function OpenDialogs() {
  const path = useLocation({ select: ({ pathname }) => pathname })
  useEffect(() => (path ? () => dialogs.set([]) : undefined), [path])
  return dialogs.use().map(({ id, content }) => <Fragment key={id}>{content}</Fragment>)
}
