import { useSyncExternalStore } from 'react'

/** What the layout asks the person while a request waits. */
export type Prompt = 'sign_in' | 'confirm'

interface Open {
  readonly kind: Prompt
  readonly answer: Promise<boolean>
  readonly resolve: (isDone: boolean) => void
}

let open: Open | undefined
const listeners = new Set<() => void>()

function ask(kind: Prompt): Promise<boolean> {
  if (open?.kind === kind) return open.answer
  open?.resolve(false)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  open = { kind, answer: promise, resolve }
  for (const listener of listeners) listener()
  return promise
}

/** Asks for the password of the person who is signed in; resolves to false if the person cancels. */
export const askForPassword = () => ask('confirm')
/** Asks the person to sign in again over the page as it is. */
export const askToSignIn = () => ask('sign_in')

export function answerPrompt(isDone: boolean) {
  open?.resolve(isDone)
  open = undefined
  for (const listener of listeners) listener()
}

export function usePrompt(): Prompt | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => open?.kind,
  )
}
