import type { AppAnswer } from '@workflow-service/contract'
import { toList, useMe, useRead, useWrite } from '../../api/queries.ts'
import { Button } from '../../components/button.tsx'
import { DataList } from '../../components/data-list.tsx'
import { RadioGroup, Switch, TextField } from '../../components/fields.tsx'
import { Form, useForm } from '../../components/form.tsx'
import { Page, Section } from '../../components/page.tsx'
import { usePreference } from '../../components/preferences.ts'
import { EmptyState } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Time } from '../../components/time.tsx'
import { toast, tryIt } from '../../components/toast.tsx'

export function AccountPage() {
  const me = useMe()
  return (
    <Page title="Account" intro={`You are ${me.role} of ${me.organization.name}.`}>
      <Section title="Profile">
        <div className="narrow">
          <ProfileForm me={me} />
        </div>
      </Section>
      <Section title={me.account.has_password ? 'Change the password' : 'Set a password'}>
        <div className="narrow">
          <PasswordForm me={me} />
        </div>
      </Section>
      <SignIns />
      <Preferences />
    </Page>
  )
}

function ProfileForm({ me }: { me: AppAnswer<'getMe'> }) {
  const write = useWrite('saveMe')
  const form = useForm({
    values: { name: me.account.name, email: me.account.email },
    save: async (values) => void (await write.mutateAsync({ body: values })),
  })
  return (
    <Form form={form} action="Save" canReset>
      <TextField label="Name" autoComplete="name" {...form.field('name')} />
      <TextField
        label="Email"
        type="email"
        autoComplete="email"
        hint="You sign in with it. A change needs your password."
        {...form.field('email')}
      />
    </Form>
  )
}

function PasswordForm({ me }: { me: AppAnswer<'getMe'> }) {
  const write = useWrite('changePassword')
  const form = useForm({
    values: { new_password: '' },
    savedText: 'Password changed. Every other sign-in has ended.',
    save: async (values) => {
      await write.mutateAsync({ body: values })
      form.reset()
    },
  })
  return (
    <Form form={form} action="Change password">
      <input type="email" autoComplete="username" value={me.account.email} readOnly hidden />
      <TextField
        label="New password"
        type="password"
        autoComplete="new-password"
        hint="At least 12 characters. Every other sign-in of yours ends."
        {...form.field('new_password')}
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

function SignIns() {
  const list = toList(useRead('listSignIns'))
  const end = useWrite('endSignIn')
  const endSignIn = (id: string) =>
    tryIt(async () => {
      await end.mutateAsync({ params: { sign_in_id: id } })
      toast('The sign-in has ended.')
    })
  return (
    <Section
      title="Sign-ins"
      intro="Where you are signed in. End those that you do not know, then change the password."
    >
      <DataList
        label="Sign-ins"
        list={list}
        empty={<EmptyState title="No sign-ins" />}
        columns={[
          { header: 'Device', cell: (row) => <span title={row.user_agent ?? ''}>{deviceText(row.user_agent)}</span> },
          { header: 'Address', cell: (row) => row.address ?? '–' },
          { header: 'Method', cell: (row) => METHODS[row.method], isSecondary: true },
          { header: 'Signed in', cell: (row) => <Time value={row.created_at} />, isSecondary: true },
          { header: 'Last seen', cell: (row) => <Time value={row.last_seen_at} /> },
          {
            header: 'Action',
            isNumber: true,
            cell: (row) =>
              row.is_current ? (
                <StatusBadge status="on">This one</StatusBadge>
              ) : (
                <Button onClick={() => void endSignIn(row.id)}>End</Button>
              ),
          },
        ]}
      />
    </Section>
  )
}

function Preferences() {
  const [theme, setTheme] = usePreference('theme')
  const [shortcuts, setShortcuts] = usePreference('shortcuts')
  return (
    <Section title="This browser">
      <div className="stack narrow">
        <RadioGroup
          label="Theme"
          value={theme}
          onValue={setTheme}
          options={[
            ['system', 'As the system'],
            ['light', 'Light'],
            ['dark', 'Dark'],
          ]}
        />
        <Switch
          label="Shortcuts of single keys"
          hint="j, k, /, ? and g with another key. Press ? for all of them."
          value={shortcuts === 'on'}
          onValue={(isOn) => setShortcuts(isOn ? 'on' : 'off')}
        />
      </div>
    </Section>
  )
}
