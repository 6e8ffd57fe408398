import type { ReactNode } from 'react'
import { AppError } from '../api/call.ts'
import type { Query } from '../api/queries.ts'
import { type Action, ActionButton, Button } from './button.tsx'
import { CopyId } from './copy.tsx'
import { describeError } from './describe-error.ts'
import { Icon, type IconName } from './icons.tsx'
import { Page } from './page.tsx'

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
      {action ? <ActionButton action={action} /> : null}
    </div>
  )
}

interface ErrorStateProps {
  error: unknown
  onRetry?: () => unknown
  /** In place of a whole page, of which it has the heading. */
  isPage?: boolean | undefined
}

/** Says what failed, with the request id for support, and tries again. */
export function ErrorState({ error, onRetry, isPage }: ErrorStateProps) {
  const requestId = error instanceof AppError ? error.requestId : undefined
  const isMissing = error instanceof AppError && error.status === 404
  const title = isMissing ? 'Not found' : 'This could not be loaded'
  const state = (
    <div className="state" role="alert">
      <Icon name="warning" />
      {isPage ? null : <h2>{title}</h2>}
      <p>{describeError(error)}</p>
      {requestId ? (
        <p className="muted">
          Request <CopyId id={requestId} />
        </p>
      ) : null}
      {onRetry && !isMissing ? (
        <Button icon="refresh" onClick={onRetry}>
          Try again
        </Button>
      ) : null}
    </div>
  )
  return isPage ? <Page title={title}>{state}</Page> : state
}

/** Lines in place of what is being read. Appears after a moment, so that fast answers do not flicker. */
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

interface LoadedProps<Data> {
  query: Query<Data>
  /** The answer makes the whole page, with its heading. */
  isPage?: boolean
  children: (data: Data) => ReactNode
}

/** Shows a query's answer, or that it is being read or has failed. */
export function Loaded<Data>({ query, isPage, children }: LoadedProps<Data>) {
  if (query.data !== undefined) return children(query.data)
  if (!query.error) return <Loading />
  return <ErrorState error={query.error} onRetry={() => query.refetch()} isPage={isPage} />
}

type Kind = 'info' | 'warning' | 'danger' | 'good'

/** A note in the flow of a page. */
export function Notice({ kind = 'info', children }: { kind?: Kind; children: ReactNode }) {
  return (
    <div className={`notice ${kind}`}>
      <Icon name={kind === 'info' ? 'info' : kind === 'good' ? 'check' : 'warning'} />
      <div>{children}</div>
    </div>
  )
}
