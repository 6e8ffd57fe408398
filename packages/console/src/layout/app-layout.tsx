import { Link, Outlet, useRouter } from '@tanstack/react-router'
import { useEffect, useLayoutEffect, useState } from 'react'
import { AppError, call, callConfirmed, queryClient, setShownOrganization, useMe, useRead } from '../api/index.ts'
import { useEvents } from '../api/events.ts'
import { answerPasswordPrompt, type PasswordPromptKind, usePasswordPrompt } from '../api/prompts.ts'
import { Button, IconButton } from '../components/button.tsx'
import { Icon } from '../components/icons.tsx'
import { Menu } from '../components/menu.tsx'
import { Dialog, FormDialog, openDialog, OpenDialogs } from '../components/dialog.tsx'
import { TextField } from '../components/fields.tsx'
import { useShortcuts } from '../components/shortcuts.ts'
import { Notice } from '../components/page.tsx'
import { firstCharacter } from '../components/text.ts'
import { announce } from '../components/toast.ts'
import { KeyValueList } from '../components/values.tsx'
import { CommandMenu } from './command-menu.tsx'
import { PAGES } from './pages.ts'

/** The frame of every page: navigation, menus, and what the person is asked while a request waits. */
export function AppLayout() {
  const me = useMe()
  // That of the time when the page was opened: what was typed since then is meant for it.
  const [openedIn] = useState(me.organization.id)
  useLayoutEffect(() => setShownOrganization(openedIn), [openedIn])
  const prompt = usePasswordPrompt()
  const [isMenuOpen, setIsMenuOpen] = useState(false)
  const [isNavOpen, setIsNavOpen] = useState(false)
  const router = useRouter()
  useEffect(() => {
    // Also by the back button or a menu in it. The page of the sign-in is not in this frame.
    const close = (path: string) => path !== '/sign-in' && setIsNavOpen(false)
    return router.subscribe('onBeforeLoad', ({ toLocation }) => void close(toLocation.pathname))
  }, [router])
  const groups = PAGES.map(
    ([group, entries]) => [group, entries.filter((entry) => me.role !== 'member' || !entry.isForAdmins)] as const,
  )
  const pages = groups.flatMap(([, entries]) => entries)
  useShortcuts({ 'mod+k': () => setIsMenuOpen(!isMenuOpen), '?': showShortcuts })
  return (
    <div className="layout">
      <a className="skip-link" href="#content">
        Skip to the content
      </a>
      <header className="sidebar" data-open={isNavOpen || undefined}>
        <Link to="/" className="product">
          <img src="/favicon.svg" alt="" />
          Workflow Automation
        </Link>
        <div className="sidebar-top">
          <OrganizationMenu />
          <IconButton icon="search" label="Search (⌘K or Ctrl-K)" onClick={() => setIsMenuOpen(true)} />
          <IconButton
            icon={isNavOpen ? 'close' : 'menu'}
            label={isNavOpen ? 'Close the navigation' : 'Open the navigation'}
            aria-expanded={isNavOpen}
            onClick={() => setIsNavOpen(!isNavOpen)}
          />
        </div>
        <nav aria-label="Pages">
          {groups.map(([group, entries]) => (
            <ul key={group} aria-label={group}>
              <li className="group" aria-hidden="true">
                {group}
              </li>
              {entries.map((entry) => (
                <li key={entry.to}>
                  <Link
                    to={entry.to}
                    activeOptions={{ exact: entry.to === '/', includeSearch: false }}
                    onClick={() => setIsNavOpen(false)}
                  >
                    <Icon name={entry.icon} />
                    {entry.label}
                    {entry.to === '/approvals' ? <WaitingCount /> : null}
                  </Link>
                </li>
              ))}
            </ul>
          ))}
        </nav>
        <AccountMenu />
      </header>
      <main id="content" tabIndex={-1}>
        <Connection key={me.organization.id} />
        {me.organization.is_suspended ? (
          <Notice kind="warning">This organization is suspended: nothing of it runs or is sent.</Notice>
        ) : null}
        <Outlet />
      </main>
      {isMenuOpen ? <CommandMenu pages={pages} onClose={() => setIsMenuOpen(false)} /> : null}
      <OpenDialogs />
      {prompt ? <PasswordPrompt kind={prompt} /> : null}
    </div>
  )
}

/** Follows the changes of one organization, and says while that fails. */
function Connection() {
  const isLost = useEvents()
  useEffect(() => (isLost ? () => announce('The connection is back.') : undefined), [isLost])
  return (
    <div role="status">
      {isLost ? (
        <Notice kind="warning">
          The connection to the server is lost. This page connects again by itself; until then it may be out of date.
        </Notice>
      ) : null}
    </div>
  )
}

/** How many payloads wait for an approval. */
function WaitingCount() {
  const count = useRead('countApprovals').data?.count ?? 0
  if (count === 0) return null
  return (
    <span className="count">
      {count >= 1_000 ? '999+' : count}
      <span className="visually-hidden"> waiting</span>
    </span>
  )
}

function showShortcuts() {
  const keys = {
    'j, k': 'Next and previous row of a list',
    Enter: 'Opens the row',
    '/': 'To the search of a list',
    '⌘K or Ctrl-K': 'Finds everything',
    '⌘S or Ctrl-S': 'Saves a form',
  }
  openDialog((close) => (
    <Dialog title="Shortcuts" onClose={close}>
      <KeyValueList items={keys} />
      <p className="muted">Those of single keys can be switched off under Account.</p>
    </Dialog>
  ))
}

/** The color of an organization's square, dark enough for white letters. */
const colorOf = (id: string) => `oklch(0.5 0.13 ${parseInt(id.slice(-4), 16) % 360})`

function OrganizationMenu() {
  const me = useMe()
  const router = useRouter()
  const name = (
    <>
      <span className="avatar" aria-hidden="true" style={{ background: colorOf(me.organization.id) }}>
        {firstCharacter(me.organization.name).toUpperCase()}
      </span>
      <span className="ellipsis">{me.organization.name}</span>
    </>
  )
  const others = me.organizations.filter(({ id }) => id !== me.organization.id)
  if (others.length === 0) return <div className="organization">{name}</div>
  return (
    <Menu
      label={`Organization: ${me.organization.name}`}
      trigger={
        <>
          {name}
          <Icon name="down" />
        </>
      }
      triggerClass="organization"
      items={others.map((organization) => ({
        label: organization.name,
        onClick: async () => {
          await router.navigate({ to: '/' })
          // Stayed, because of what was typed.
          if (router.latestLocation.pathname !== '/') return
          await callConfirmed('switchOrganization', { body: { organization_id: organization.id } })
          // Nothing that was read or typed of the one before is left.
          window.location.assign('/')
        },
      }))}
    />
  )
}

function AccountMenu() {
  const me = useMe()
  const router = useRouter()
  async function signOut() {
    // Before the sign-in ends: a person who stays because of what was typed can save it.
    await router.navigate({ to: '/sign-in' })
    if (router.latestLocation.pathname !== '/sign-in') return
    await call('signOut', {}).catch(async (error: unknown) => {
      // Another tab has signed out already.
      if (error instanceof AppError && error.code === 'unauthorized') return
      await router.navigate({ to: '/' })
      throw error
    })
    // What was read of the person. The page of the sign-in reads what it needs meanwhile.
    queryClient.removeQueries({ type: 'inactive' })
  }
  return (
    <Menu
      label={`Account: ${me.account.name}`}
      trigger={
        <>
          <Icon name="account" />
          <span className="ellipsis">{me.account.name || me.account.email}</span>
        </>
      }
      triggerClass="account"
      items={[
        { label: 'Account', icon: 'account', onClick: () => router.navigate({ to: '/account' }) },
        { label: 'Sign out', icon: 'external', onClick: signOut },
      ]}
    />
  )
}

const PROMPTS = {
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

/** Opens the page to sign in, which comes back to this one. */
function signIn() {
  const here = encodeURIComponent(window.location.pathname + window.location.search)
  window.location.assign(`/sign-in?next=${here}`)
}

/** Asks for the password: before a sensitive change, or because the sign-in has ended. */
function PasswordPrompt({ kind }: { kind: PasswordPromptKind }) {
  const { account, organization } = useMe()
  const { email, has_password: hasPassword } = account
  // Left for a page outside of this frame, as after the deletion of the organization.
  useEffect(() => () => answerPasswordPrompt(false), [])
  const close = () => {
    answerPasswordPrompt(false)
    // Nothing on the page can be read or saved without a sign-in.
    if (kind === 'sign_in') signIn()
  }
  if (!hasPassword)
    return (
      <Dialog title="Sign in again" onClose={close} actions={<Button label="Sign in" onClick={signIn} />}>
        <p>
          {kind === 'confirm'
            ? 'This change needs a sign-in of the last 10 minutes, and your account has no password.'
            : 'Your sign-in has ended.'}
        </p>
      </Dialog>
    )
  return (
    <FormDialog
      {...PROMPTS[kind]}
      isTransient
      values={{ password: '' }}
      save={async ({ password }) => {
        let me = await (kind === 'confirm'
          ? call('confirmPassword', { body: { password } })
          : call('signIn', { body: { email, password } }))
        // A sign-in begins in the organization used last, and the page may be one of another.
        const isOther = kind === 'sign_in' && me.organization.id !== organization.id
        if (isOther && me.organizations.some(({ id }) => id === organization.id)) {
          me = await call('switchOrganization', { body: { organization_id: organization.id } })
        }
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
