import { Link, type LinkProps, useParams } from '@tanstack/react-router'
import type { AppOperationId, AppResponseBody } from '@workflow-service/contract'
import { type ReactNode, useEffect, useId, useRef } from 'react'
import { AppError, describeError, type Query, type RequestArgument, useRead } from '../api/index.ts'
import { type Action, Button } from './button.tsx'
import { Icon, type IconName } from './icons.tsx'
import { CopyId } from './values.tsx'

let isFirstPage = true

interface PageProps {
  /** The heading, and the title of the tab. */
  title: string
  /** The page above this one, such as the list. */
  back?: readonly [label: string, link: LinkProps]
  /** Shown beside the title: a badge or an id. */
  meta?: ReactNode
  actions?: ReactNode
  /** One sentence below the title. */
  intro?: ReactNode
  children: ReactNode
}

export function Page({ title, back, meta, actions, intro, children }: PageProps) {
  return (
    <div className="page">
      <header className="page-header">
        {back ? (
          <Link {...back[1]} className="back">
            {back[0]}
          </Link>
        ) : null}
        <div className="page-title">
          <Heading title={title} />
          {meta}
          {actions ? <div className="actions">{actions}</div> : null}
        </div>
        {intro ? <p className="muted">{intro}</p> : null}
      </header>
      {children}
    </div>
  )
}

/**
 * The heading of a page, and the title of the tab. Takes the focus after a navigation, so that screen readers read it.
 */
export function Heading({ title }: { title: string }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (!isFirstPage) heading.current?.focus({ preventScroll: true })
    isFirstPage = false
  }, [])
  useTitle(title)
  return (
    <h1 ref={heading} tabIndex={-1}>
      {title}
    </h1>
  )
}

/** The titles of what is open, such as a page and a drawer beside it: the last one names the tab of the browser. */
const titles = new Map<string, string>()
const showTitle = () => {
  document.title = [...[...titles.values()].slice(-1), 'Workflow Automation Service'].join(' – ')
}

/** Names the tab of the browser as long as the component is shown. */
export function useTitle(title: string) {
  const id = useId()
  useEffect(() => {
    titles.set(id, title)
    showTitle()
  }, [id, title])
  useEffect(() => () => void (titles.delete(id) && showTitle()), [id])
}

interface SectionProps {
  title: string
  intro?: ReactNode
  actions?: ReactNode
  /** For forms: lines of text that are easy to read. */
  isNarrow?: boolean
  children?: ReactNode
}

/** A part of a page with its own heading. */
export function Section({ title, intro, actions, isNarrow, children }: SectionProps) {
  return (
    <section className="section">
      <header>
        <h2>{title}</h2>
        {actions ? <div className="actions">{actions}</div> : null}
        {intro ? <p className="muted">{intro}</p> : null}
      </header>
      {isNarrow ? <div className="narrow stack">{children}</div> : children}
    </section>
  )
}

export interface EmptyStateProps {
  icon?: IconName
  title: string
  text?: ReactNode
  action?: Action | undefined
}

/** Says that there is nothing yet, and the next step. */
export function EmptyState({ icon, title, text, action }: EmptyStateProps) {
  return (
    <div className="state">
      {icon ? <Icon name={icon} /> : null}
      <h2>{title}</h2>
      {text ? <p>{text}</p> : null}
      {action ? <Button {...action} /> : null}
    </div>
  )
}

/** Whether the address names what cannot exist: an id that is not complete. */
const hasWrongId = (error: unknown) =>
  error instanceof AppError &&
  error.code === 'validation_error' &&
  Object.keys(error.details).some((field) => field.endsWith('_id'))

/** The words for an error of reading. What the server says of parameters is for developers. */
function describeReadError(error: unknown): string {
  if (hasWrongId(error))
    return 'The address has an id that is not complete. Open the page from its list, or find it by the whole id.'
  if (error instanceof AppError && error.code === 'validation_error')
    return 'The address has a filter that cannot be read. Clear the filters.'
  return describeError(error)
}

/**
 * Says what failed, with the request id for support, and tries again if that can help. `isPage`: in place of a whole
 * page, with its heading.
 */
export function ErrorState(props: {
  error: unknown
  onRetry?: (() => unknown) | undefined
  isPage?: boolean | undefined
}) {
  const { error, onRetry, isPage } = props
  const { status = 0, body } = error instanceof AppError ? error : {}
  const isMissing = status === 404 || hasWrongId(error)
  const canHelp = status < 400 || status >= 500 || status === 429
  const title = isMissing ? 'Not found' : 'This could not be loaded'
  const state = (
    <div className="state" role="alert">
      <Icon name="warning" />
      {isPage ? null : <h2>{title}</h2>}
      <p>{describeReadError(error)}</p>
      {body?.request_id ? (
        <p className="muted">
          Request <CopyId id={body.request_id} />
        </p>
      ) : null}
      {onRetry && canHelp ? <Button label="Try again" icon="refresh" onClick={onRetry} /> : null}
    </div>
  )
  return isPage ? <Page title={title}>{state}</Page> : state
}

/** Lines in place of what is being read. Appears after a moment, so that fast responses do not flicker. */
export function Loading({ label = 'Loading' }: { label?: string }) {
  return (
    <div className="loading" role="status">
      <span className="visually-hidden">{label}</span>
      <i />
      <i />
      <i />
    </div>
  )
}

/**
 * Shows a query's response, or that it is being read or has failed. `isPage`: the response makes the whole page, with
 * its heading.
 */
export function Loaded<Data>(props: { query: Query<Data>; isPage?: boolean; children: (data: Data) => ReactNode }) {
  const { data, error, refetch } = props.query
  if (data !== undefined) return props.children(data)
  return error ? <ErrorState error={error} onRetry={() => refetch()} isPage={props.isPage} /> : <Loading />
}

/** A page of one thing, read with an operation whose parameters are those of the URL. */
export function pageOf<Id extends AppOperationId>(
  id: Id,
  Details: (thing: AppResponseBody<Id> & { id: string }) => ReactNode,
) {
  return function ThingPage() {
    const request = [{ params: useParams({ strict: false }) }] as unknown as RequestArgument<Id>
    const query = useRead(id, ...request) as Query<AppResponseBody<Id> & { id: string }>
    return (
      <Loaded query={query} isPage>
        {(thing) => <Details key={thing.id} {...thing} />}
      </Loaded>
    )
  }
}

/** A note in the flow of a page. */
export function Notice(props: { kind?: 'info' | 'warning' | 'danger' | 'good'; children: ReactNode }) {
  const { kind = 'info', children } = props
  return (
    <div className={`notice ${kind}`}>
      <Icon name={kind === 'info' ? 'info' : kind === 'good' ? 'check' : 'warning'} />
      <div>{children}</div>
    </div>
  )
}
