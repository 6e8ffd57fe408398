import { call } from '../api/call.ts'
import { queryClient, useMe } from '../api/queries.ts'
import { answerPrompt, type Prompt } from '../api/prompts.ts'
import { Dialog } from '../components/dialog.tsx'
import { TextField } from '../components/fields.tsx'
import { Form, useForm } from '../components/form.tsx'

/** Asks for the password: before a sensitive change, or because the sign-in has ended. */
export default function PasswordPrompt({ kind }: { kind: Prompt }) {
  const { account } = useMe()
  const form = useForm({
    values: { password: '' },
    savedText: null,
    warnsBeforeLeaving: false,
    save: async ({ password }) => {
      const me =
        kind === 'confirm'
          ? await call('confirmPassword', { body: { password } })
          : await call('signIn', { body: { email: account.email, password } })
      queryClient.setQueryData(['getMe', {}], me)
      answerPrompt(true)
    },
  })
  const close = () => {
    answerPrompt(false)
    // Nothing on the page can be read or saved without a sign-in.
    if (kind === 'sign_in') window.location.assign('/sign-in')
  }
  return (
    <Dialog title={kind === 'confirm' ? 'Confirm with your password' : 'Sign in again'} onClose={close}>
      <p>
        {kind === 'confirm'
          ? 'This change needs your password. You are not asked again for 10 minutes.'
          : 'Your sign-in has ended. Everything on the page stays as it is.'}
      </p>
      <Form form={form} action={kind === 'confirm' ? 'Confirm' : 'Sign in'}>
        <input type="email" autoComplete="username" value={account.email} readOnly hidden />
        <TextField label="Password" type="password" autoComplete="current-password" {...form.field('password')} />
      </Form>
    </Dialog>
  )
}
