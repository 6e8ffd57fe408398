import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import type { AppResponseBody } from '@workflow-service/contract'
import { APP_ROUTES } from '@workflow-service/contract/app-routes'
import { type ReactNode, useEffect, useState } from 'react'
import { AppError, call, queryClient, useRead } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { NewPasswordField, TextField } from '../../components/fields.tsx'
import { Form, useForm } from '../../components/form.tsx'
import { ErrorState, Heading, Loaded, Notice } from '../../components/page.tsx'
import { Time } from '../../components/status-and-time.tsx'

/** What a failed sign-in with the provider means, and the next step. */
const PROVIDER_ERRORS: Record<string, string> = {
  oidc_unavailable:
    'The sign-in of your organization’s provider cannot be reached. Try again in a few minutes, or sign in with your password.',
  oidc_failed: 'The provider’s sign-in was not completed. Try again; if it stays, ask an admin of your organization.',
  oidc_not_invited:
    'No account belongs to this sign-in. Ask an admin of your organization to invite the address that you use there, which the provider must have verified.',
}

const KEEPS_COOKIES = {
  queryKey: ['keepsCookies'],
  // The first response sets the cookie, which the second request then has.
  queryFn: async () => (await call('tryCookie', {})).is_kept || (await call('tryCookie', {})).is_kept,
  staleTime: Infinity,
  retry: false,
  refetchInterval: false,
  refetchOnWindowFocus: false,
} as const

/**
 * Safari keeps no `Secure` cookie over http, not even on this machine. A sign-in would end at once, and its link be
 * used up.
 */
const NOT_KEPT = `This browser does not keep the sign-in${location.protocol === 'http:' ? ' over http; use Chrome or Firefox, or https. Nothing is lost: open this address there' : '. Allow cookies for this page, then reload it'}.`

/** A page without navigation: for people who are not signed in. */
function EntryPage({ title, intro, children }: { title: string; intro?: ReactNode; children: ReactNode }) {
  const { data: keepsCookies } = useQuery(KEEPS_COOKIES)
  return (
    <main className="entry-page">
      <p className="product">
        <img src="/favicon.svg" alt="" width="32" height="32" /> Workflow Automation Service
      </p>
      <Heading title={title} />
      {intro ? <p className="muted">{intro}</p> : null}
      {keepsCookies === false ? (
        <Notice kind="danger">
          <p role="alert">{NOT_KEPT}</p>
        </Notice>
      ) : (
        children
      )}
    </main>
  )
}

/**
 * Signs in with `request`, then shows the page that the person wanted. Only pages of this application: another host is
 * never opened.
 */
function useEnter() {
  const navigate = useNavigate()
  const { next } = useSearch({ strict: false })
  return async (request: () => Promise<AppResponseBody<'getMe'>>) => {
    const me = await request()
    queryClient.clear()
    queryClient.setQueryData(['getMe', {}], me)
    // `URL.parse` is newer than the oldest browsers for which the page is built.
    const url = next?.startsWith('/') && URL.canParse(next, location.origin) ? new URL(next, location.origin) : null
    // A path such as `/.//host` has two slashes, and so is a host, only after it was normalized.
    const isPage = url?.origin === location.origin && !url.pathname.startsWith('//')
    await navigate({ href: isPage ? next! : '/', replace: true })
  }
}

export function SignInPage() {
  const enter = useEnter()
  const { next, error } = useSearch({ strict: false })
  const setup = useRead('getSetup')
  const form = useForm({
    values: { email: '', password: '' },
    isTransient: true,
    save: async (values) => await enter(() => call('signIn', { body: values })),
  })
  return (
    <EntryPage title="Sign in">
      {setup.data?.needs_setup ? (
        <Notice>
          No account exists yet. Open the setup link that <code>npm start</code> printed, or make a new one with{' '}
          <code>wf setup-link</code>.
        </Notice>
      ) : null}
      {error ? (
        <Notice kind="danger">
          <p role="alert">{PROVIDER_ERRORS[error] ?? PROVIDER_ERRORS['oidc_failed']}</p>
        </Notice>
      ) : null}
      <Form form={form} action="Sign in">
        <TextField type="email" autoComplete="username" required {...form.field('email', 'Email')} />
        <TextField
          type="password"
          autoComplete="current-password"
          required
          hint="Forgotten? An admin of your organization can make a reset link."
          {...form.field('password', 'Password')}
        />
      </Form>
      <ProviderLink next={next} label="Sign in with your organization’s provider" />
    </EntryPage>
  )
}

/** Leads to the provider, if the installation has one. */
function ProviderLink({ next, label }: { next?: string | undefined; label: string }) {
  if (!useRead('getSetup').data?.has_oidc) return null
  return (
    <a
      className="button secondary"
      href={`${APP_ROUTES.startOidc.path}${next ? `?next=${encodeURIComponent(next)}` : ''}`}
    >
      {label}
    </a>
  )
}

interface LinkProps {
  token: string
  link: AppResponseBody<'openLink'>
}

/** The token is in the fragment, which is not sent to the server with the page. It has no escaped characters. */
const readToken = () => location.hash.slice(1)

/** Shows a link's page once the link is known to be usable. */
function WithLink({ Content }: { Content: (props: LinkProps) => ReactNode }) {
  const [token, setToken] = useState(readToken)
  useEffect(() => {
    // Another link that is opened in the same tab changes only the fragment, for which the browser loads nothing.
    const onChange = () => setToken(readToken())
    window.addEventListener('hashchange', onChange)
    return () => window.removeEventListener('hashchange', onChange)
  }, [])
  const link = useQuery({
    queryKey: ['openLink', token],
    queryFn: () => call('openLink', { body: { token } }),
    enabled: token !== '',
    refetchInterval: false,
    refetchOnWindowFocus: false,
  })
  const error = token ? link.error : new AppError(404, {})
  if (!error) return <Loaded query={link}>{(data) => <Content key={token} token={token} link={data} />}</Loaded>
  const isUnusable = error instanceof AppError && error.status >= 400 && error.status < 500 && error.status !== 429
  return (
    <EntryPage title="This link cannot be used">
      {isUnusable ? (
        <>
          <p>
            It was used, has expired, or was replaced by a newer one. If you have used it, sign in. Otherwise ask an
            admin of your organization for another; the first owner gets one from <code>npm start</code> or{' '}
            <code>wf setup-link</code>.
          </p>
          <Button label="Sign in" link={{ to: '/sign-in' }} />
        </>
      ) : (
        <ErrorState error={error} onRetry={() => link.refetch()} />
      )}
    </EntryPage>
  )
}

export const SetUpPage = () => <WithLink Content={SetUp} />

function SetUp({ token, link }: LinkProps) {
  const enter = useEnter()
  useEffect(() => document.querySelector('input')?.focus(), [])
  const form = useForm({
    values: { organization_name: link.organization_name ?? '', name: '', email: '', password: '' },
    savedText: null,
    save: async (values) => await enter(() => call('setUp', { body: { token, ...values } })),
  })
  return (
    <EntryPage title="Set up" intro={`You will become the owner of ${link.organization_name ?? 'a new organization'}.`}>
      <Form form={form} action="Create and sign in">
        {link.organization_name === null ? (
          <TextField autoComplete="organization" {...form.field('organization_name', 'Organization')} />
        ) : null}
        <TextField autoComplete="name" {...form.field('name', 'Your name')} />
        <TextField type="email" autoComplete="username" {...form.field('email', 'Email')} />
        <NewPasswordField {...form.field('password', 'Password')} />
      </Form>
    </EntryPage>
  )
}

type UserLinkKind = Exclude<LinkProps['link']['kind'], 'setup'>

/** What the page of a link says. Whether the address of an invitation has an account is not known here. */
const LINK_TEXTS: Record<UserLinkKind, { title: string; intro: string; action: string; hint?: string }> = {
  invitation: {
    title: 'Join',
    intro: 'You were invited as ',
    action: 'Accept and sign in',
    hint: 'The password of your account, if you have one with this address. Otherwise a new one, of at least 12 characters. If neither is accepted, ask the operator of this service for a reset link.',
  },
  reset: { title: 'Set a new password', intro: 'For ', action: 'Set password and sign in' },
  email: {
    title: 'Change your email address',
    intro: 'You will sign in with ',
    action: 'Change the address and sign in',
    hint: 'The password of your account.',
  },
}

export const LinkPage = () => <WithLink Content={AcceptLink} />

function AcceptLink({ token, link }: LinkProps) {
  const enter = useEnter()
  const kind = link.kind as UserLinkKind
  const { title, intro, action, hint } = LINK_TEXTS[kind]
  const isInvitation = kind === 'invitation'
  const hasProvider = useRead('getSetup').data?.has_oidc
  const providerHint = isInvitation && hasProvider ? ' None, if you have just signed in with your provider.' : ''
  const form = useForm({
    values: { name: link.name ?? '', password: '' },
    savedText: null,
    save: async ({ name, password }) =>
      await enter(() =>
        call('acceptLink', { body: { token, password: password || undefined, name: isInvitation ? name : undefined } }),
      ),
  })
  return (
    <EntryPage
      title={isInvitation ? `${title} ${link.organization_name ?? 'the organization'}` : title}
      intro={
        <>
          {intro}
          <strong>{link.email}</strong>
          {link.role ? `, with the role ${link.role}` : ''}. The link can be used once, until{' '}
          <Time value={link.expires_at} isExact />.
        </>
      }
    >
      <Form form={form} action={action}>
        <input type="email" autoComplete="username" value={link.email ?? ''} readOnly hidden />
        {isInvitation ? <TextField autoComplete="name" {...form.field('name', 'Your name')} /> : null}
        <NewPasswordField
          {...(kind === 'email' ? { autoComplete: 'current-password' } : {})}
          {...(hint ? { hint: hint + providerHint } : {})}
          {...form.field('password', kind === 'reset' ? 'New password' : 'Password')}
        />
      </Form>
      {/* Who has set a password does not sign in there any more. */}
      {isInvitation ? <ProviderLink label="New here? Join with your organization’s provider" /> : null}
    </EntryPage>
  )
}
