import { useState } from 'react'
import { mutate, toList, useIsAdmin, useMe, useRead } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { DataList } from '../../components/data-list.tsx'
import { CheckboxGroup, NewPasswordField, RadioGroup, Switch, TextField } from '../../components/fields.tsx'
import { Form, useForm } from '../../components/form.tsx'
import { Page, Section } from '../../components/page.tsx'
import { preferences, setPreference } from '../../components/preferences.ts'
import { StatusBadge, Time } from '../../components/status-and-time.tsx'
import { reportTest } from '../../components/toast.ts'

export function AccountPage() {
  const me = useMe()
  const [changes, setChanges] = useState(0)
  return (
    <Page title="Account" intro={`You are ${me.role} of ${me.organization.name}.`}>
      <Section title="Profile" isNarrow>
        <ProfileForm {...me.account} />
      </Section>
      <Section title={me.account.has_password ? 'Change the password' : 'Set a password'} isNarrow>
        <PasswordForm key={changes} email={me.account.email} onChanged={() => setChanges(changes + 1)} />
      </Section>
      <MyNotices />
      <SignIns />
      <Preferences />
    </Page>
  )
}

const MEMBER_KINDS = {
  failures: 'Failed runs and deliveries',
  approvals: 'Payloads that wait for approval',
  sources: 'Paused and failing webhook sources',
} as const
const NOTICE_KINDS = { ...MEMBER_KINDS, keys: 'API keys that expire' } as const
type Kind = keyof typeof NOTICE_KINDS

const sendTest = async () => reportTest(await mutate('testMyNotices', {}))

/** The notices that the person gets by email. */
function MyNotices() {
  const mine = useRead('getMyNotices').data
  if (!mine) return null
  return (
    <Section
      title="Notices by email"
      isNarrow
      intro={mine.has_mail ? 'At most once an hour each.' : 'Your operator has not set up email (SMTP_URL).'}
    >
      {mine.has_mail ? <NoticesForm kinds={mine.kinds} /> : null}
    </Section>
  )
}

function NoticesForm({ kinds }: { kinds: Kind[] }) {
  const isAdmin = useIsAdmin()
  const form = useForm({
    values: { kinds },
    save: ({ kinds: chosen }) => mutate('saveMyNotices', { body: { kinds: chosen } }),
  })
  return (
    <Form
      form={form}
      action="Save notices"
      canReset
      extra={<Button label="Send a test" icon="send" onClick={sendTest} />}
    >
      <CheckboxGroup<Kind> options={isAdmin ? NOTICE_KINDS : MEMBER_KINDS} {...form.field('kinds', 'Send me')} />
    </Form>
  )
}

function ProfileForm({ name, email }: { name: string; email: string }) {
  const form = useForm({ values: { name }, save: (body) => mutate('saveMe', { body }) })
  return (
    <Form form={form} action="Save" canReset>
      <TextField autoComplete="name" {...form.field('name', 'Name')} />
      <p>
        You sign in with <strong>{email}</strong>. An admin of your organization makes a link to change it, on the page
        People.
      </p>
    </Form>
  )
}

/** Sets another password. The next one begins with an empty form. */
function PasswordForm({ email, onChanged }: { email: string; onChanged: () => void }) {
  const form = useForm({
    values: { new_password: '' },
    savedText: 'Password changed. Every other sign-in has ended.',
    save: async (body) => {
      await mutate('changePassword', { body })
      onChanged()
    },
  })
  return (
    <Form form={form} action="Change password">
      <input type="email" autoComplete="username" value={email} readOnly hidden />
      <NewPasswordField
        hint="At least 12 characters. Every other sign-in of yours ends."
        {...form.field('new_password', 'New password')}
      />
    </Form>
  )
}

/** Names the browser and system of a user agent in a few words. */
function deviceText(userAgent: string | null): string {
  if (!userAgent) return 'Unknown device'
  const browser = /(Firefox|Edg|OPR|Chrome|Safari)\//.exec(userAgent)?.[1]
  const system = /(Android|iPhone|iPad|Windows|Mac OS X|CrOS|Linux)/.exec(userAgent)?.[1]
  const name = { Edg: 'Edge', OPR: 'Opera' }[browser ?? ''] ?? browser
  return [name ?? userAgent.slice(0, 40), system?.replace('Mac OS X', 'macOS')].filter(Boolean).join(' on ')
}

const METHODS = { password: 'Password', oidc: 'Provider', link: 'Link' } as const

const THEMES = { system: 'As the system', light: 'Light', dark: 'Dark' }

const endSignIn = (id: string) => mutate('endSignIn', { params: { sign_in_id: id } })

function SignIns() {
  return (
    <Section
      title="Sign-ins"
      intro="Where you are signed in. End those that you do not know, then change the password."
    >
      <DataList
        label="Sign-ins"
        list={toList(useRead('listSignIns'))}
        empty={{ title: 'No sign-ins' }}
        columns={[
          { header: 'Device', cell: (row) => <span title={row.user_agent ?? ''}>{deviceText(row.user_agent)}</span> },
          { header: 'Address', cell: (row) => row.address ?? '–' },
          { header: 'Method', cell: (row) => METHODS[row.method], isSecondary: true },
          { header: 'Signed in', cell: (row) => <Time value={row.created_at} />, isSecondary: true },
          { header: 'Last seen', cell: (row) => <Time value={row.last_seen_at} /> },
          {
            header: 'Action',
            isNumber: true,
            cell: ({ id, is_current: isCurrent }) =>
              isCurrent ? (
                <StatusBadge status="active">This one</StatusBadge>
              ) : (
                <Button label="End" onClick={() => endSignIn(id)} done="The sign-in has ended." />
              ),
          },
        ]}
      />
    </Section>
  )
}

function Preferences() {
  const { theme, shortcuts } = preferences.use()
  return (
    <Section title="This browser" isNarrow>
      <RadioGroup label="Theme" value={theme} onValue={(value) => setPreference('theme', value)} options={THEMES} />
      <Switch
        label="Shortcuts of single keys"
        hint="In a list, j and k go to the next and previous row, and / to the search. ? lists all of them."
        value={shortcuts === 'on'}
        onValue={(isOn) => setPreference('shortcuts', isOn ? 'on' : 'off')}
      />
    </Section>
  )
}
