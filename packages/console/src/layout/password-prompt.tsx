import { call, queryClient, useMe } from '../api/index.ts'
import { answerPasswordPrompt, type PasswordPromptKind } from '../api/prompts.ts'
import { FormDialog } from '../components/dialog.tsx'
import { TextField } from '../components/fields.tsx'

const TEXTS = {
  confirm: {
    title: 'Confirm with your password',
    action: 'Confirm',
    text: 'This change needs your password. You are not asked again for 10 minutes.',
  },
  sign_in: {
    title: 'Sign in again',
    action: 'Sign in',
    text: 'Your sign-in has ended. Everything on the page stays as it is.',
  },
}

/** Asks for the password: before a sensitive change, or because the sign-in has ended. */
export function PasswordPrompt({ kind }: { kind: PasswordPromptKind }) {
  const { email } = useMe().account
  const close = () => {
    answerPasswordPrompt(false)
    // Nothing on the page can be read or saved without a sign-in.
    if (kind === 'sign_in') window.location.assign('/sign-in')
  }
  return (
    <FormDialog
      {...TEXTS[kind]}
      isTransient
      values={{ password: '' }}
      save={async ({ password }) => {
        const me = await (kind === 'confirm'
          ? call('confirmPassword', { body: { password } })
          : call('signIn', { body: { email, password } }))
        queryClient.setQueryData(['getMe', {}], me)
        answerPasswordPrompt(true)
      }}
      onClose={close}
      fields={({ field }) => (
        <>
          <input type="email" autoComplete="username" value={email} readOnly hidden />
          <TextField type="password" autoComplete="current-password" {...field('password', 'Password')} />
        </>
      )}
    />
  )
}
