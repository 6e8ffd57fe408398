import type { AppAnswer, AppUserOut, Role } from '@workflow-service/contract'
import { useState } from 'react'
import { useList, useMe, useWrite } from '../../api/queries.ts'
import { Button } from '../../components/button.tsx'
import { CopyBox } from '../../components/copy.tsx'
import { DataList } from '../../components/data-list.tsx'
import { ConfirmDialog, Dialog } from '../../components/dialog.tsx'
import { SelectField, TextField } from '../../components/fields.tsx'
import { Form, useForm } from '../../components/form.tsx'
import { Menu, type MenuItem } from '../../components/menu.tsx'
import { Page } from '../../components/page.tsx'
import { EmptyState } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Time } from '../../components/time.tsx'
import { toast, tryIt } from '../../components/toast.tsx'

const ROLE_TEXTS: Record<Role, string> = { owner: 'Owner', admin: 'Admin', member: 'Member' }
type RoleChoice = Role | ''
interface PersonValues {
  first_name: string
  last_name: string
  role: RoleChoice
}

function nameOf(user: AppUserOut): string {
  return [user.first_name, user.last_name].filter(Boolean).join(' ') || user.email
}

/** The roles that the person may give; only an owner makes an owner. */
function useRoleOptions(): (readonly [RoleChoice, string])[] {
  const { role } = useMe()
  return [
    ...(role === 'owner' ? [['owner', 'Owner: everything, also deleting the organization'] as const] : []),
    ['admin', 'Admin: also webhook sources, keys, people and the audit log'],
    ['member', 'Member: workflows, runs and logs'],
    ['', 'No access: listed in workflows only'],
  ]
}

type Open =
  | { kind: 'add' }
  | { kind: 'edit' | 'deactivate' | 'remove'; user: AppUserOut }
  | { kind: 'link'; user: AppUserOut; link: AppAnswer<'createUserLink'> }

export function PeoplePage() {
  const me = useMe()
  const list = useList('listUsers')
  const [open, setOpen] = useState<Open>()
  const close = () => setOpen(undefined)
  const createLink = useWrite('createUserLink')
  const signOut = useWrite('signUserOut')
  const save = useWrite('saveUser')
  const remove = useWrite('deleteUser')

  const makeLink = async (user: AppUserOut, kind: 'invitation' | 'reset') =>
    setOpen({
      kind: 'link',
      user,
      link: await createLink.mutateAsync({ params: { user_id: user.id }, body: { kind } }),
    })
  const setDeactivated = async (user: AppUserOut, isDeactivated: boolean) => {
    await save.mutateAsync({
      params: { user_id: user.id },
      body: { is_deactivated: isDeactivated, version: user.version },
    })
    toast(`${nameOf(user)} is ${isDeactivated ? 'deactivated' : 'active again'}.`)
  }

  const actionsFor = (user: AppUserOut): MenuItem[][] => [
    [
      { label: 'Change name and role', icon: 'account', onSelect: () => setOpen({ kind: 'edit', user }) },
      ...(user.role && user.state !== 'active' && user.state !== 'deactivated'
        ? [
            {
              label: 'Make an invitation link',
              icon: 'external',
              onSelect: () => void tryIt(() => makeLink(user, 'invitation')),
            } as const,
          ]
        : []),
      ...(user.state === 'active'
        ? [
            {
              label: 'Make a reset link',
              icon: 'key',
              onSelect: () => void tryIt(() => makeLink(user, 'reset')),
            } as const,
            {
              label: 'Sign out everywhere',
              icon: 'lock',
              onSelect: () =>
                void tryIt(async () => {
                  await signOut.mutateAsync({ params: { user_id: user.id } })
                  toast(`${nameOf(user)} is signed out everywhere.`)
                }),
            } as const,
          ]
        : []),
    ],
    user.id === me.user_id
      ? []
      : [
          user.state === 'deactivated'
            ? { label: 'Activate', icon: 'check', onSelect: () => void tryIt(() => setDeactivated(user, false)) }
            : { label: 'Deactivate', icon: 'close', onSelect: () => setOpen({ kind: 'deactivate', user }) },
          { label: 'Remove', icon: 'trash', isDangerous: true, onSelect: () => setOpen({ kind: 'remove', user }) },
        ],
  ]

  const isAdmin = me.role !== 'member'
  const addButton = isAdmin ? (
    <Button variant="primary" icon="plus" onClick={() => setOpen({ kind: 'add' })}>
      Add person
    </Button>
  ) : null
  return (
    <Page title="People" intro="Who belongs to the organization, and what they may do." actions={addButton}>
      <DataList
        label="People"
        list={list}
        empty={
          <EmptyState icon="people" title="No people yet" action={addButton}>
            Add the people who use the application, or who workflows belong to.
          </EmptyState>
        }
        columns={[
          {
            header: 'Person',
            cell: (user) => (
              <>
                {nameOf(user)}
                {user.id === me.user_id ? <span className="muted"> (you)</span> : null}
              </>
            ),
          },
          { header: 'Email', cell: (user) => user.email },
          { header: 'Role', cell: (user) => (user.role ? ROLE_TEXTS[user.role] : '–') },
          {
            header: 'State',
            cell: (user) => (
              <StatusBadge status={user.state}>
                {user.role && user.state === 'no_access' ? 'Not invited' : undefined}
              </StatusBadge>
            ),
          },
          { header: 'Workflows', cell: (user) => user.workflow_count, isNumber: true, isSecondary: true },
          {
            header: 'Last seen',
            cell: (user) => (user.last_seen_at ? <Time value={user.last_seen_at} /> : 'Never'),
          },
          ...(isAdmin
            ? [
                {
                  header: 'Actions',
                  isNumber: true,
                  cell: (user: AppUserOut) =>
                    // An admin cannot change an owner.
                    user.role === 'owner' && me.role !== 'owner' ? null : (
                      <Menu label={`Actions for ${nameOf(user)}`} groups={actionsFor(user)} />
                    ),
                },
              ]
            : []),
        ]}
      />
      {open?.kind === 'add' ? (
        <AddPerson onClose={close} onAdded={(user) => tryIt(() => makeLink(user, 'invitation'))} />
      ) : null}
      {open?.kind === 'edit' ? <EditPerson user={open.user} onClose={close} /> : null}
      {open?.kind === 'link' ? <ShownLink {...open} onClose={close} /> : null}
      {open?.kind === 'deactivate' ? (
        <ConfirmDialog
          title={`Deactivate ${nameOf(open.user)}?`}
          action="Deactivate"
          onClose={close}
          onConfirm={() => setDeactivated(open.user, true)}
        >
          <p>The person is signed out at once and cannot sign in until you activate them again.</p>
        </ConfirmDialog>
      ) : null}
      {open?.kind === 'remove' ? (
        <ConfirmDialog
          title={`Remove ${nameOf(open.user)}?`}
          action="Remove"
          onClose={close}
          onConfirm={async () => {
            await remove.mutateAsync({ params: { user_id: open.user.id } })
            toast(`${nameOf(open.user)} is removed.`)
          }}
        >
          <p>The person is signed out at once and no longer belongs to {open.user.workflow_count} workflows.</p>
        </ConfirmDialog>
      ) : null}
    </Page>
  )
}

function AddPerson({ onClose, onAdded }: { onClose: () => void; onAdded: (user: AppUserOut) => Promise<void> }) {
  const create = useWrite('createUser')
  const options = useRoleOptions()
  const [id] = useState(() => crypto.randomUUID())
  const form = useForm<PersonValues & { email: string }>({
    values: { email: '', first_name: '', last_name: '', role: 'member' },
    savedText: null,
    warnsBeforeLeaving: false,
    save: async ({ role, ...values }) => {
      const user = await create.mutateAsync({ body: { id, ...values, role: role || null } })
      onClose()
      if (role) await onAdded(user)
      else toast(`${nameOf(user)} is added.`)
    },
  })
  return (
    <Dialog title="Add person" onClose={onClose}>
      <Form form={form} action="Add" extra={<Button onClick={onClose}>Cancel</Button>}>
        <TextField label="Email" type="email" {...form.field('email')} />
        <div className="columns">
          <TextField label="First name" {...form.field('first_name')} />
          <TextField label="Last name" {...form.field('last_name')} />
        </div>
        <SelectField
          label="Role"
          options={options}
          hint="You get a link to hand to the person: this service sends no mail."
          {...form.field('role')}
        />
      </Form>
    </Dialog>
  )
}

function valuesOf(user: AppUserOut): PersonValues {
  return { first_name: user.first_name, last_name: user.last_name, role: user.role ?? '' }
}

function EditPerson({ user, onClose }: { user: AppUserOut; onClose: () => void }) {
  const save = useWrite('saveUser')
  const options = useRoleOptions()
  const form = useForm({
    values: valuesOf(user),
    version: user.version,
    labels: { first_name: 'First name', last_name: 'Last name', role: 'Role' },
    warnsBeforeLeaving: false,
    fromCurrent: (current: AppUserOut) => ({ values: valuesOf(current), version: current.version }),
    save: async ({ role, ...values }, version) => {
      await save.mutateAsync({ params: { user_id: user.id }, body: { ...values, role: role || null, version } })
      onClose()
    },
  })
  return (
    <Dialog title={user.email} onClose={onClose}>
      <Form form={form} action="Save" extra={<Button onClick={onClose}>Cancel</Button>}>
        <div className="columns">
          <TextField label="First name" {...form.field('first_name')} />
          <TextField label="Last name" {...form.field('last_name')} />
        </div>
        <SelectField
          label="Role"
          options={options}
          hint="Another role ends the person’s sign-ins."
          {...form.field('role')}
        />
      </Form>
    </Dialog>
  )
}

function ShownLink(props: { user: AppUserOut; link: AppAnswer<'createUserLink'>; onClose: () => void }) {
  const { user, link, onClose } = props
  return (
    <Dialog title={`Link for ${nameOf(user)}`} onClose={onClose} actions={<Button onClick={onClose}>Done</Button>}>
      <p>
        Hand it to {user.email} yourself: it can be used once, until <Time value={link.expires_at} isExact />. It is not
        shown again.
      </p>
      <CopyBox label="link" text={link.url} />
    </Dialog>
  )
}
