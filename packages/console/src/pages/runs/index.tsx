import type { AppResponseBody, RunDetailOut } from '@workflow-service/contract'
import { canDraftRules } from '@workflow-service/contract/draft-rules'
import { whyParked } from '@workflow-service/contract/parked-run'
import { useState } from 'react'
import { mutate, useIsAdmin, useRead } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { ListPage } from '../../components/data-list.tsx'
import { askToConfirm } from '../../components/dialog.tsx'
import { Loaded, Notice, Page, pageOf, Section } from '../../components/page.tsx'
import { durationText, StatusBadge, Time } from '../../components/status-and-time.tsx'
import { fileLink, linkTo, ThingLink, tryLink } from '../../components/thing-link.tsx'
import { CopyId, JsonView, KeyValueList, LongText, moneyText, shortId } from '../../components/values.tsx'
import { keepAsCase } from '../cases/keep-case.tsx'
import { hasEnded, originText, runText, useRunList } from './run-list.tsx'
import { errorText } from './run-text.ts'
import { Approvals } from './approvals.tsx'
import { deliveryText, Resent, Timeline } from './timeline.tsx'

export { ApprovalsPage } from './approvals.tsx'

export function RunsPage() {
  return (
    <ListPage
      title="Runs"
      {...useRunList()}
      empty={{
        icon: 'run',
        title: 'Nothing has run yet',
        text: 'Start a workflow under “Try it”, through the API or on a schedule.',
        action: { label: 'Open a workflow', link: { to: '/workflows' } },
      }}
    />
  )
}

export const RunPage = pageOf('getRun', RunDetails)

const QUEUED = 'It waits for the earlier starts of its session, or for a free runner.'

/** Whether a model executes the run: its first step names the agent. */
function hasModel({ steps }: RunDetailOut): boolean {
  const first = steps.find(({ kind }) => kind === 'message')?.data as { agent?: string } | undefined
  return first?.agent !== undefined && first.agent !== 'builtin'
}

function RunDetails(run: RunDetailOut) {
  const isAdmin = useIsAdmin()
  const { workflow, error, attempts, created_at: acceptedAt, started_at: startedAt } = run
  const [sent, another] = run.deliveries.filter(({ resend_of: of }) => of === null)
  const askToStop = () =>
    askToConfirm({
      title: 'Stop this run?',
      text: 'It ends as cancelled before its next step. A payload that is under way is finished and recorded.',
      action: 'Stop run',
      onConfirm: () => mutate('cancelRun', { params: { run_id: run.id } }),
      done: 'The run is cancelled.',
    })
  const tokens = [`${run.input_tokens.toLocaleString('en')} read`, `${run.output_tokens.toLocaleString('en')} written`]
  return (
    <Page
      title={`Run of ${workflow.name}`}
      back={['Runs', { to: '/runs' }]}
      meta={
        <span role="status">
          <StatusBadge status={run.status} />
        </span>
      }
      actions={
        <>
          {hasEnded(run) ? null : <Button label="Stop run" icon="close" onClick={askToStop} />}
          {run.status === 'succeeded' ? (
            <Button
              label="Keep as case"
              icon="check"
              onClick={() => keepAsCase(workflow.id, { run_id: run.id }, run.context)}
            />
          ) : null}
          <Button label="Start again" icon="run" link={tryLink(workflow.id, { again: run.id })} />
          {sent && !another ? (
            <Button label={deliveryText(sent.outcome)} variant="primary" link={linkTo('delivery', sent.id)} />
          ) : null}
        </>
      }
    >
      {error ? (
        <Notice kind="danger">
          <p>
            {errorText(error)} <code className="muted">{/^(\w+): /.exec(error)?.[1]}</code>
          </p>
          {canDraftRules(error) ? (
            <Button label="Write the rule" variant="primary" link={fileLink(workflow.id, { run: run.id })} />
          ) : null}
        </Notice>
      ) : null}
      {run.status === 'queued' ? <Notice>{whyParked(run) ?? QUEUED}</Notice> : null}
      <Approvals run={run} />
      <Section title="Timeline">
        <Timeline run={run} />
      </Section>
      <Resent run={run} />
      <KeyValueList
        items={{
          Workflow: <ThingLink kind="workflow" id={workflow.id} name={workflow.name} />,
          Session: (
            <ThingLink kind="session" id={run.session_id} name={`Start ${run.number} of ${shortId(run.session_id)}`} />
          ),
          'Started by': originText(run),
          'Start accepted': <Time value={acceptedAt} isExact />,
          Waited: startedAt && durationText(Date.parse(startedAt) - Date.parse(acceptedAt)),
          Ran: runText(run) || null,
          Attempts: attempts > 1 && attempts,
          Tokens: run.input_tokens + run.output_tokens > 0 && tokens.join(', '),
          Cost: run.cost_micros !== null && run.currency !== null && moneyText(run.cost_micros, run.currency),
          'Run id': <CopyId id={run.id} label="run id" />,
          'Request id': <CopyId id={run.request_id} label="request id" />,
        }}
      />
      {isAdmin && hasModel(run) ? <Prompts runId={run.id} /> : null}
      <details>
        <summary>Raw journal</summary>
        <JsonView label="journal" value={run.steps} />
      </details>
    </Page>
  )
}

type RunPrompts = AppResponseBody<'getRunPrompts'>

/** What the model was asked in a run, for admins: read when it is opened, since it is large. */
function Prompts({ runId }: { runId: string }) {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <details onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>What the model was asked</summary>
      {isOpen ? <LoadedPrompts runId={runId} /> : null}
    </details>
  )
}

function LoadedPrompts({ runId }: { runId: string }) {
  const query = useRead('getRunPrompts', { params: { run_id: runId } })
  return (
    <Loaded query={query}>
      {(data) =>
        data.requests.length === 0 ? (
          <p className="muted">Nothing is recorded: the run has asked no model yet, or is older than this record.</p>
        ) : (
          data.requests.map((request) => <Request key={request.turn} data={data} request={request} />)
        )
      }
    </Loaded>
  )
}

function Request({ data, request }: { data: RunPrompts; request: RunPrompts['requests'][number] }) {
  const { instructions, tools, message, omitted_bytes: omitted } = data.prompts[request.prompt]!
  const messages = [{ role: 'user', content: message as unknown }, ...data.messages.slice(0, request.messages)]
  return (
    <Section title={`Request ${request.turn}${request.is_answered ? '' : ', not answered'}`}>
      {omitted === null ? null : <p>The prompt is large: {omitted.toLocaleString('en')} bytes of it are not kept.</p>}
      <h3>System text</h3>
      <LongText text={instructions} />
      <h3>Tools</h3>
      <JsonView label={`tools of request ${request.turn}`} value={tools} />
      <h3>Messages</h3>
      <ol className="lines">
        {messages.map(({ role, content }, index) => (
          // The list only grows at its end.
          // oxlint-disable-next-line react/no-array-index-key
          <li key={index} className="stack">
            <span className="muted">{role}</span>
            {typeof content === 'string' ? (
              <LongText text={content} />
            ) : (
              <JsonView label={`${role} message`} value={content} />
            )}
          </li>
        ))}
      </ol>
    </Section>
  )
}
