import { createStore } from './store.ts'

/** What the layout asks the person while a request waits. */
export type PasswordPromptKind = 'sign_in' | 'confirm'

const open = createStore<(PromiseWithResolvers<boolean> & { kind: PasswordPromptKind }) | undefined>(undefined)

/**
 * Asks for the password of the person who is signed in, or to sign in again over the page as it is. Resolves to false
 * if the person cancels.
 */
export function askForPassword(kind: PasswordPromptKind): Promise<boolean> {
  const before = open.get()
  if (before?.kind === kind) return before.promise
  before?.resolve(false)
  const asked = { kind, ...Promise.withResolvers<boolean>() }
  open.set(asked)
  return asked.promise
}

export function answerPasswordPrompt(isDone: boolean) {
  open.get()?.resolve(isDone)
  open.set(undefined)
}

export const usePasswordPrompt = (): PasswordPromptKind | undefined => open.use()?.kind
