import type { ReactNode } from 'react'
import { AppError } from '../api/call.ts'
import { Button } from './button.tsx'
import { CopyId } from './copy.tsx'
import { Icon, type IconName } from './icons.tsx'

/** Says that there is nothing yet, and the next step. */
export function EmptyState(props: { icon?: IconName; title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="state">
      {props.icon ? <Icon name={props.icon} /> : null}
      <h2>{props.title}</h2>
      {props.children ? <p>{props.children}</p> : null}
      {props.action}
    </div>
  )
}

/** The words for an error that is not one of a field. */
export function describeError(error: unknown): string {
  if (!(error instanceof AppError)) return 'Something went wrong on this page. Reload it, then try again.'
  if (error.code === 'rate_limited') return 'Too many requests. Wait a moment, then try again.'
  if (error.code === 'forbidden_for_role') return 'Your role does not allow this. Ask an admin of your organization.'
  if (error.code === 'not_found') return 'This does not exist, or you have no access to it.'
  return error.message
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
          Request <CopyId id={requestId} isShort={false} />
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

interface Query<Data> {
  data: Data | undefined
  error: Error | null
  refetch: () => unknown
}

/** Shows a query's answer, or that it is being read or has failed. */
export function Loaded<Data>({ query, children }: { query: Query<Data>; children: (data: Data) => ReactNode }) {
  if (query.data !== undefined) return children(query.data)
  return query.error ? <ErrorState error={query.error} onRetry={() => void query.refetch()} /> : <Loading />
}

/** A note in the flow of a page. */
export function Notice({
  kind = 'info',
  children,
}: {
  kind?: 'info' | 'warning' | 'danger' | 'good'
  children: ReactNode
}) {
  return (
    <div className={`notice ${kind}`}>
      <Icon name={kind === 'info' ? 'info' : kind === 'good' ? 'check' : 'warning'} />
      <div>{children}</div>
    </div>
  )
}
