import { Link, useNavigate } from '@tanstack/react-router'
import type { RunOut, SessionDetailOut } from '@workflow-service/contract'
import { useState } from 'react'
import { newId, useList, mutate } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { DataList, ListPage } from '../../components/data-list.tsx'
import { askToConfirm } from '../../components/dialog.tsx'
import { TextStart } from '../../components/delivery-columns.tsx'
import { FilterSelect, useFilters } from '../../components/filters.tsx'
import { Page, pageOf } from '../../components/page.tsx'
import { StatusBadge, Time } from '../../components/status-and-time.tsx'
import { linkTo, tryLink } from '../../components/thing-link.tsx'
import { CopyId, shortId } from '../../components/values.tsx'
import { WorkflowPicker } from '../../components/pickers.tsx'
import { hasEnded, RUN_COLUMNS, runLink, StopQueued } from '../runs/run-list.tsx'

const STATES = { open: 'Open', closed: 'Closed' }

export function SessionsPage() {
  const filters = useFilters('state')
  const navigate = useNavigate()
  // A repeated request with the same id opens no second session.
  const [id] = useState(newId)
  async function create() {
    await mutate('createSession', { body: { id } })
    await navigate(linkTo('session', id))
  }
  return (
    <ListPage
      title="Sessions"
      intro="Starts of one session run one after another, and a model knows the earlier ones."
      create={{ label: 'New session', onClick: create }}
      label="sessions"
      list={useList('listSessions', { query: filters as never })}
      columns={[
        { header: 'Opened', cell: (session) => <Time value={session.created_at} /> },
        { header: 'State', cell: (session) => <StatusBadge status={session.is_open ? 'open' : 'closed'} /> },
        { header: 'Latest text', cell: (session) => <TextStart text={session.first_line} /> },
        { header: 'Session', cell: (session) => <CopyId id={session.id} isShort label="session id" /> },
        { header: 'Starts', cell: (session) => session.start_count.toLocaleString('en'), isNumber: true },
        { header: 'Not ended', cell: (session) => session.waiting_count.toLocaleString('en'), isNumber: true },
      ]}
      rowLink={(session) => linkTo('session', session.id)}
      filters={filters}
      controls={<FilterSelect name="state" label="State" options={STATES} />}
      empty={{
        icon: 'session',
        title: 'No sessions yet',
        text: 'Every start without a session opens one. Open one yourself to start several workflows in it, one after another.',
      }}
    />
  )
}

export const SessionPage = pageOf('getSession', SessionDetails)

function SessionDetails(session: SessionDetailOut) {
  const { id, runs, is_open: isOpen, start_count: count, waiting_count: waiting, closed_at: closedAt } = session
  const navigate = useNavigate()
  const askToClose = () =>
    askToConfirm({
      title: 'Close this session?',
      text: 'It accepts no more starts, and cannot be opened again. Starts that it accepted still run.',
      action: 'Close session',
      onConfirm: () => mutate('closeSession', { params: { session_id: id } }),
      done: 'The session is closed.',
    })
  return (
    <Page
      title={`Session ${shortId(id)}`}
      back={['Sessions', { to: '/sessions' }]}
      meta={
        <>
          <StatusBadge status={isOpen ? 'open' : 'closed'} />
          <CopyId id={id} isShort label="session id" />
        </>
      }
      actions={
        <>
          <StopQueued runs={runs} kind="session" id={id} />
          {isOpen ? <Button label="Close session" onClick={askToClose} /> : null}
        </>
      }
      intro={
        <>
          Opened <Time value={session.created_at} />
          {closedAt ? ', closed ' : null}
          {closedAt ? <Time value={closedAt} /> : null}, {count.toLocaleString('en')} {count === 1 ? 'start' : 'starts'}
          {waiting > 0 ? `, ${waiting.toLocaleString('en')} of them not ended` : ''}.
        </>
      }
    >
      {isOpen ? (
        <div className="narrow">
          <WorkflowPicker
            label="Start in this session"
            placeholder="Name of a workflow"
            onValue={(workflowId) => void navigate(tryLink(workflowId, { session: id }))}
          />
        </div>
      ) : null}
      {count > runs.length && runs.length > 0 ? (
        <p className="muted">
          These are the latest {runs.length} starts that you have access to.{' '}
          <Link to="/runs" search={{ session: id }}>
            Open all
          </Link>
        </p>
      ) : null}
      <DataList
        label="starts of the session"
        list={{ rows: runs, error: null, isLoading: false }}
        columns={[
          { header: 'Start', cell: (run) => `${run.number}. ${run.workflow.name}` },
          ...RUN_COLUMNS,
          ...(waiting > 0 ? [{ header: 'Waits for', cell: (run: RunOut) => waitsFor(run, session) }] : []),
        ]}
        rowLink={runLink}
        empty={{
          icon: 'run',
          title: count > 0 ? 'Its starts were deleted' : 'Nothing was started in it',
          text: isOpen
            ? 'Choose a workflow above, or send this session’s id with a start through the API.'
            : 'It is closed. Open a new session to start workflows in it.',
        }}
      />
    </Page>
  )
}

/** What a start of a session waits for: the nearest earlier one that has not ended, or a runner, or what parked it. */
function waitsFor(
  { status, number, started_at: startedAt }: RunOut,
  { runs, waiting_count: waiting }: SessionDetailOut,
): string {
  if (status !== 'queued') return ''
  const left = runs.filter((run) => !hasEnded(run))
  const before = left.findLast((run) => run.number < number)
  if (before) return `Start ${before.number}`
  if (startedAt) return 'See its run'
  return waiting > left.length ? 'Earlier starts, or a free runner' : 'A free runner'
}
