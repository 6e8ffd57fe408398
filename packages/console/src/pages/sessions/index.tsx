import { linkOptions, useNavigate, useParams, Link } from '@tanstack/react-router'
import type { RunOut, SessionDetailOut } from '@workflow-service/contract'
import { useState } from 'react'
import { newId } from '../../api/new-id.ts'
import { toList, useList, useRead, useWrite } from '../../api/queries.ts'
import { Button } from '../../components/button.tsx'
import { CopyId } from '../../components/copy.tsx'
import { DataList, FilterSelect, useFilters } from '../../components/data-list.tsx'
import { ConfirmDialog } from '../../components/dialog.tsx'
import { Page } from '../../components/page.tsx'
import { EmptyState, Loaded } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Time } from '../../components/time.tsx'
import { toast, tryIt } from '../../components/toast.tsx'
import { WorkflowPicker } from '../../components/workflow-picker.tsx'
import { RUN_COLUMNS, runLink } from '../runs/run-list.tsx'

const STATES = [
  ['open', 'Open'],
  ['closed', 'Closed'],
] as const

export function SessionsPage() {
  const filters = useFilters('state')
  const list = useList('listSessions', { query: filters.values as never })
  const navigate = useNavigate()
  const create = useWrite('createSession')
  // A repeated request with the same id opens no second session.
  const [id] = useState(newId)
  const newButton = (
    <Button
      variant="primary"
      icon="plus"
      isBusy={create.isPending}
      onClick={() =>
        void tryIt(async () => {
          await create.mutateAsync({ body: { id } })
          await navigate({ to: '/sessions/$sessionId', params: { sessionId: id } })
        })
      }
    >
      New session
    </Button>
  )
  const isEmpty = list.rows.length === 0 && !filters.isFiltered
  return (
    <Page
      title="Sessions"
      intro="Starts of one session run one after another, and the agent knows the earlier ones."
      actions={isEmpty ? null : newButton}
    >
      <DataList
        label="sessions"
        list={list}
        columns={[
          { header: 'Opened', cell: ({ created_at: at }) => <Time value={at} /> },
          { header: 'State', cell: ({ is_open: isOpen }) => <StatusBadge status={isOpen ? 'open' : 'closed'} /> },
          { header: 'Session', cell: (session) => <CopyId id={session.id} label="session id" /> },
          { header: 'Starts', cell: ({ start_count: count }) => count.toLocaleString('en'), isNumber: true },
          { header: 'Not ended', cell: ({ waiting_count: count }) => count.toLocaleString('en'), isNumber: true },
        ]}
        rowLink={(session) => linkOptions({ to: '/sessions/$sessionId', params: { sessionId: session.id } })}
        filters={isEmpty ? null : <FilterSelect filters={filters} name="state" label="State" options={STATES} />}
        isFiltered={filters.isFiltered}
        empty={
          <EmptyState icon="session" title="No sessions yet" action={newButton}>
            Every start without a session opens one. Open one yourself to start several workflows in it, one after
            another.
          </EmptyState>
        }
      />
    </Page>
  )
}

export function SessionPage() {
  const { sessionId } = useParams({ from: '/app/sessions/$sessionId' })
  const query = useRead('getSession', { params: { session_id: sessionId } })
  return (
    <Loaded query={query}>
      {(session) => <SessionDetails session={session} runs={toList({ ...query, data: { data: session.runs } })} />}
    </Loaded>
  )
}

function SessionDetails({ session, runs }: { session: SessionDetailOut; runs: ReturnType<typeof toList<RunOut>> }) {
  const [isClosing, setIsClosing] = useState(false)
  const close = useWrite('closeSession')
  const navigate = useNavigate()
  const { id, is_open: isOpen, start_count: count, waiting_count: waitingCount, closed_at: closedAt } = session
  return (
    <Page
      title={`Session …${id.slice(-8)}`}
      back={{ label: 'Sessions', link: linkOptions({ to: '/sessions' }) }}
      meta={
        <>
          <StatusBadge status={isOpen ? 'open' : 'closed'} />
          <CopyId id={id} label="session id" />
        </>
      }
      actions={isOpen ? <Button onClick={() => setIsClosing(true)}>Close session</Button> : null}
      intro={
        <>
          Opened <Time value={session.created_at} />
          {closedAt ? (
            <>
              , closed <Time value={closedAt} />
            </>
          ) : null}
          , {count.toLocaleString('en')} {count === 1 ? 'start' : 'starts'}
          {waitingCount > 0 ? `, ${waitingCount.toLocaleString('en')} of them not ended` : ''}.
        </>
      }
    >
      {isOpen ? (
        <div className="narrow">
          <WorkflowPicker
            label="Start in this session"
            placeholder="Name of a workflow"
            onValue={(workflowId) =>
              void navigate({ to: '/workflows/$workflowId/try', params: { workflowId }, search: { session: id } })
            }
          />
        </div>
      ) : null}
      {count > runs.rows.length ? (
        <p className="muted">
          These are the latest {runs.rows.length} starts that you have access to.{' '}
          <Link to="/runs" search={{ session: id }}>
            Open all
          </Link>
        </p>
      ) : null}
      <DataList
        label="starts of the session"
        list={runs}
        columns={[
          { header: 'Start', cell: (run) => `${run.number}. ${run.workflow.name}` },
          ...RUN_COLUMNS,
          ...(waitingCount > 0
            ? [{ header: 'Waits for', cell: (run: RunOut) => waitsFor(run, count - waitingCount) }]
            : []),
        ]}
        rowLink={runLink}
        empty={
          <EmptyState icon="run" title="Nothing was started in it">
            {isOpen
              ? 'Choose a workflow above, or send this session’s id with a start through the API.'
              : 'It is closed. Open a new session to start workflows in it.'}
          </EmptyState>
        }
      />
      {isClosing ? (
        <ConfirmDialog
          title="Close this session?"
          action="Close session"
          onClose={() => setIsClosing(false)}
          onConfirm={async () => {
            await close.mutateAsync({ params: { session_id: id } })
            toast('The session is closed.')
          }}
        >
          <p>It accepts no more starts, and cannot be opened again. Starts that it accepted still run.</p>
        </ConfirmDialog>
      ) : null}
    </Page>
  )
}

/** What a start of a session waits for: the one before it, or a runner. */
function waitsFor({ status, number }: RunOut, endedCount: number): string {
  if (status !== 'queued') return ''
  return number - 1 > endedCount ? `Start ${number - 1}` : 'A free runner'
}
