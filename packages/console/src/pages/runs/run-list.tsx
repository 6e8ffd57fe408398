import type { RunOut } from '@workflow-service/contract'
import { mutate, useList } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { askToConfirm } from '../../components/dialog.tsx'
import { oneLine, TextStart } from '../../components/delivery-columns.tsx'
import { FilterPeriod, useFilter, useFilters } from '../../components/filters.tsx'
import { durationText, FullTime, StatusBadge, statusTexts } from '../../components/status-and-time.tsx'
import { linkTo } from '../../components/thing-link.tsx'
import { shortId } from '../../components/values.tsx'
import { useWorkflowName, WorkflowPicker } from '../../components/pickers.tsx'
import { errorText, NO_CODE } from './run-text.ts'

const STATUSES = statusTexts('queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled')

/** What began a run, in words. */
export function originText({ origin, started_by: by }: Pick<RunOut, 'origin' | 'started_by'>): string {
  if (origin === 'auto_run') return 'Schedule'
  if (origin === 'app') return by?.name ?? 'A person or the operator'
  return by ? `API key ${by.name}` : 'API'
}

/** How long a run took, from its first attempt. */
export function runText({ started_at: start, finished_at: end }: Pick<RunOut, 'started_at' | 'finished_at'>): string {
  return start && end ? durationText(Date.parse(end) - Date.parse(start)) : ''
}

/** The columns of every table of runs. */
export const RUN_COLUMNS = [
  { header: 'Accepted', cell: ({ created_at: at }: RunOut) => <FullTime value={at} /> },
  { header: 'Status', cell: ({ status }: RunOut) => <StatusBadge status={status} /> },
  { header: 'Text', cell: ({ first_line: text }: RunOut) => <TextStart text={text} /> },
  {
    header: 'Error',
    cell: ({ error }: RunOut) => (error ? <span className="muted clamp">{errorText(error)}</span> : null),
    isOptional: true,
  },
  { header: 'Started by', cell: (run: RunOut) => oneLine(originText(run)), isSecondary: true },
  { header: 'Took', cell: runText, isNumber: true },
]

const ALL_COLUMNS = [{ header: 'Workflow', cell: ({ workflow }: RunOut) => oneLine(workflow.name) }, ...RUN_COLUMNS]

/** Where a run is shown. */
export const runLink = ({ id }: RunOut) => linkTo('run', id)

export const hasEnded = ({ finished_at: end }: Pick<RunOut, 'finished_at'>): boolean => end !== null

/** A button that ends the queued runs of a workflow or session, if some of these runs are queued. */
export function StopQueued({ runs, ...queue }: { runs: readonly RunOut[]; kind: 'workflow' | 'session'; id: string }) {
  if (!runs.some(({ status }) => status === 'queued')) return null
  const askToStop = () =>
    askToConfirm({
      title: `Stop all queued runs of this ${queue.kind}?`,
      text: 'They end as cancelled, and nothing more of them is sent. Runs that are under way go on.',
      action: 'Stop queued runs',
      async onConfirm() {
        while ((await mutate('cancelQueuedRuns', { body: queue })).is_more) continue
      },
      done: 'The queued runs are cancelled.',
    })
  return <Button label="Stop queued runs" icon="close" onClick={askToStop} />
}

/** Filters by a workflow, which is found by its name. */
export function FilterWorkflow({ name }: { name: string }) {
  const [value, set] = useFilter(name)
  return <WorkflowPicker label="Workflow" isLabelHidden placeholder="Workflow: all" value={value} onValue={set} />
}

/** The runs of the organization, or of one workflow, with their filters: what a list shows except when it is empty. */
export function useRunList(workflowId?: string) {
  const filters = useFilters('search', 'status', 'workflow', 'session', 'needs_attention', 'since', 'until')
  const workflowName = useWorkflowName(filters.workflow)
  const { workflow, session, needs_attention: code, ...others } = filters
  const attention = { needs_attention: code?.replace(NO_CODE, '') }
  const query = { ...others, ...attention, workflow_id: workflowId ?? workflow, session_id: session }
  const list = useList('listRuns', { query: query as never })
  return {
    label: 'runs',
    list,
    columns: workflowId ? RUN_COLUMNS : ALL_COLUMNS,
    rowLink: runLink,
    filters,
    search: 'Order number, word or id',
    fields: {
      search: { label: 'Search' },
      status: { label: 'Status', options: STATUSES },
      workflow: { label: 'Workflow', text: () => workflowName },
      session: { label: 'Session', text: shortId },
      needs_attention: { label: 'Needs attention', text: (of: string) => (of === NO_CODE ? 'no code' : of) },
    },
    controls: (
      <>
        {workflowId ? (
          <StopQueued runs={list.rows} kind="workflow" id={workflowId} />
        ) : (
          <FilterWorkflow name="workflow" />
        )}
        <FilterPeriod />
      </>
    ),
  }
}
