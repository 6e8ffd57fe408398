import { Toast } from '@base-ui/react/toast'
import { describeError } from './states.tsx'

const manager = Toast.createToastManager()

/** Says for a few seconds that something was done. */
export function toast(title: string, kind: 'good' | 'bad' = 'good'): void {
  manager.add({ title, type: kind, priority: kind === 'bad' ? 'high' : 'low' })
}

/** Runs an action outside of a form; an error is shown as a message. */
export async function tryIt(action: () => Promise<unknown>): Promise<void> {
  try {
    await action()
  } catch (error) {
    toast(describeError(error), 'bad')
  }
}

/** The place of the messages; once in the page. */
export function Toaster() {
  return (
    <Toast.Provider toastManager={manager} timeout={4_000} limit={3}>
      <Toast.Portal>
        <Toast.Viewport className="toasts">
          <Messages />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  )
}

function Messages() {
  const { toasts } = Toast.useToastManager()
  return toasts.map((entry) => (
    <Toast.Root key={entry.id} toast={entry} className={`toast ${entry.type}`} swipeDirection={[]}>
      <Toast.Title className="toast-title" render={<p />} />
      <Toast.Close className="button ghost icon-only" aria-label="Dismiss">
        ×
      </Toast.Close>
    </Toast.Root>
  ))
}
