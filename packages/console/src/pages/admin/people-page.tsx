import type { AppResponseBody, AppUserOut, Role } from '@workflow-service/contract'
import { newId, useList, useMe, mutate } from '../../api/index.ts'
import type { Action } from '../../components/button.tsx'
import { ListPage } from '../../components/data-list.tsx'
import { askToConfirm, openForm, showOnce } from '../../components/dialog.tsx'
import { SelectField, TextField } from '../../components/fields.tsx'
import { editFormOptions } from '../../components/form.tsx'
import { Menu } from '../../components/menu.tsx'
import { StatusBadge, Time } from '../../components/status-and-time.tsx'
import { toast, tryIt } from '../../components/toast.ts'
import { CopyBox } from '../../components/values.tsx'

type UserLinkOut = AppResponseBody<'createUserLink'>

const ROLE_TEXTS: Record<Role, string> = { owner: 'Owner', admin: 'Admin', member: 'Member' }

function nameOf(user: AppUserOut): string {
  return [user.first_name, user.last_name].filter(Boolean).join(' ') || user.email
}

export function PeoplePage() {
  const me = useMe()
  const isAdmin = me.role !== 'member'
  return (
    <ListPage
      title="People"
      intro="Who belongs to the organization, and what they may do."
      create={isAdmin ? { label: 'Add person', onClick: () => openPerson(me.role) } : undefined}
      label="People"
      list={useList('listUsers')}
      empty={{
        icon: 'people',
        title: 'No people yet',
        text: 'Add the people who use the application, or who workflows belong to.',
      }}
      columns={[
        { header: 'Person', cell: (user) => nameOf(user) + (user.id === me.user_id ? ' (you)' : '') },
        { header: 'Email', cell: (user) => user.email, isOptional: true },
        { header: 'Role', cell: (user) => (user.role ? ROLE_TEXTS[user.role] : '–'), isShort: true },
        { header: 'State', cell: (user) => <State user={user} /> },
        { header: 'Workflows', cell: (user) => user.workflow_count, isNumber: true, isSecondary: true },
        { header: 'Last seen', cell: (user) => <Time value={user.last_seen_at} none="Never" /> },
        ...(isAdmin
          ? [{ header: 'Actions', isNumber: true, cell: (user: AppUserOut) => <PersonMenu user={user} /> }]
          : []),
      ]}
    />
  )
}

function State({ user: { state, role } }: { user: AppUserOut }) {
  return <StatusBadge status={state}>{role && state === 'no_access' ? 'Not invited' : undefined}</StatusBadge>
}

async function makeLink(user: AppUserOut, kind: 'invitation' | 'reset') {
  showLink(user, user.email, await mutate('createUserLink', { params: { user_id: user.id }, body: { kind } }))
}

/** Asks for the new address, and makes the link with which the person takes it. */
function openEmailChange(user: AppUserOut) {
  openForm({
    values: { email: '' },
    title: `Change the email address of ${nameOf(user)}`,
    action: 'Make a link',
    savedText: null,
    save: async ({ email }) => {
      const link = await mutate('createUserLink', { params: { user_id: user.id }, body: { kind: 'email', email } })
      return { link, email }
    },
    onSaved: ({ link, email }) => showLink(user, email, link),
    fields: ({ field }) => (
      <TextField
        type="email"
        hint="You vouch for it: send the link to this address. The person also needs the password."
        {...field('email', 'New email')}
      />
    ),
  })
}

function showLink(user: AppUserOut, email: string, link: UserLinkOut) {
  showOnce({
    title: `Link for ${nameOf(user)}`,
    done: 'Done',
    children: (
      <>
        <p>
          Hand it to {email} yourself: it can be used once, until <Time value={link.expires_at} isExact />. It is not
          shown again.
        </p>
        <CopyBox label="link" text={link.url} />
      </>
    ),
  })
}

function PersonMenu({ user }: { user: AppUserOut }) {
  const me = useMe()
  // An admin cannot change an owner.
  if (user.role === 'owner' && me.role !== 'owner') return null
  const { state, workflow_count: count } = user
  const isMe = user.id === me.user_id
  const name = nameOf(user)
  const params = { user_id: user.id }
  const setDeactivated = (isDeactivated: boolean) =>
    mutate('saveUser', { params, body: { is_deactivated: isDeactivated, version: user.version } })
  const deactivate = () =>
    askToConfirm({
      title: `Deactivate ${name}?`,
      text: 'The person is signed out at once and cannot sign in until you activate them again.',
      action: 'Deactivate',
      onConfirm: () => setDeactivated(true),
      done: `${name} is deactivated.`,
    })
  const leaves = count > 0 && (count === 1 ? '1 workflow' : `${count} workflows`)
  const remove = () =>
    askToConfirm({
      title: `Remove ${name}?`,
      text: `The person is signed out at once${leaves ? ` and no longer belongs to ${leaves}` : ''}.`,
      action: 'Remove',
      onConfirm: () => mutate('deleteUser', { params }),
      done: `${name} is removed.`,
    })
  const signOut = () =>
    askToConfirm({
      title: `Sign ${name} out everywhere?`,
      text: 'What the person has not saved is lost, unless the person signs in again on the open page.',
      action: 'Sign out',
      onConfirm: () => mutate('signUserOut', { params }),
      done: `${name} is signed out everywhere.`,
    })
  const isActive = state === 'active'
  const canInvite = user.role !== null && !isActive && state !== 'deactivated'
  const activation: Action =
    state === 'deactivated'
      ? { label: 'Activate', icon: 'check', onClick: () => setDeactivated(false), done: `${name} is active again.` }
      : { label: 'Deactivate', icon: 'close', onClick: deactivate }
  return (
    <Menu
      label={`Actions for ${name}`}
      items={[
        { label: 'Change name and role', icon: 'account', onClick: () => openPerson(me.role, user) },
        canInvite && {
          label: 'Make an invitation link',
          icon: 'external',
          onClick: () => makeLink(user, 'invitation'),
        },
        isActive && { label: 'Make a reset link', icon: 'key', onClick: () => makeLink(user, 'reset') },
        isActive && { label: 'Change the email address', icon: 'external', onClick: () => openEmailChange(user) },
        isActive && { label: 'Sign out everywhere', icon: 'lock', onClick: signOut },
        !isMe && activation,
        !isMe && { label: 'Remove', icon: 'trash', variant: 'danger', onClick: remove },
      ]}
    />
  )
}

const valuesOf = (user: AppUserOut | undefined) => ({
  email: user?.email ?? '',
  first_name: user?.first_name ?? '',
  last_name: user?.last_name ?? '',
  role: user ? (user.role ?? '') : ('member' as Role | ''),
})

const OWNER = { owner: 'Owner: everything, also deleting the organization' }
const ROLES = {
  admin: 'Admin: also webhook sources, keys, people and the audit log',
  member: 'Member: workflows, runs and logs',
  '': 'No access: listed in workflows only',
}

/** Adds a person, with a link to hand over, or changes one. */
function openPerson(myRole: Role, user?: AppUserOut) {
  const id = newId()
  openForm({
    ...editFormOptions(user, valuesOf),
    title: user?.email ?? 'Add person',
    action: user ? 'Save' : 'Add',
    savedText: user ? 'Saved.' : null,
    async save({ email, role, ...names }, version) {
      const values = { ...names, role: role || null }
      if (!user) return await mutate('createUser', { body: { id, email, ...values } })
      await mutate('saveUser', { params: { user_id: user.id }, body: { ...values, version } })
      return undefined
    },
    async onSaved(added) {
      if (added?.role) await tryIt(() => makeLink(added, 'invitation'))
      else if (added) toast(`${nameOf(added)} is added.`)
    },
    fields: ({ field }) => (
      <>
        {user ? null : <TextField type="email" {...field('email', 'Email')} />}
        <div className="columns">
          <TextField {...field('first_name', 'First name')} />
          <TextField {...field('last_name', 'Last name')} />
        </div>
        <SelectField
          // Only an owner makes an owner.
          options={myRole === 'owner' ? { ...OWNER, ...ROLES } : ROLES}
          hint={
            user
              ? 'Another role ends the person’s sign-ins.'
              : 'You get a link to hand to the person: invitations are not mailed.'
          }
          {...field('role', 'Role')}
        />
      </>
    ),
  })
}
