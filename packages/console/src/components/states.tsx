import type { ReactNode } from 'react'
import { AppError } from '../api/call.ts'
import type { Query } from '../api/queries.ts'
import { type Action, ActionButton, Button } from './button.tsx'
import { CopyId } from './copy.tsx'
import { describeError } from './describe-error.ts'
import { Icon, type IconName } from './icons.tsx'

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

/** Says what failed, with the request id for support, and tries again. */
export function ErrorState({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const requestId = error instanceof AppError ? error.requestId : undefined
  const isMissing = error instanceof AppError && error.status === 404
  return (
    <div className="state" role="alert">
      <Icon name="warning" />
      <h2>{isMissing ? 'Not found' : 'This could not be loaded'}</h2>
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

/** Shows a query's answer, or that it is being read or has failed. */
export function Loaded<Data>({ query, children }: { query: Query<Data>; children: (data: Data) => ReactNode }) {
  if (query.data !== undefined) return children(query.data)
  return query.error ? <ErrorState error={query.error} onRetry={() => void query.refetch()} /> : <Loading />
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
