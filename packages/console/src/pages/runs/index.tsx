import type { ApprovalOut, RunDetailOut } from '@workflow-service/contract'
import { APPROVAL_REASON_MAX_LENGTH } from '@workflow-service/contract/limits'
import { useMe, mutate } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { ListPage } from '../../components/data-list.tsx'
import { askToConfirm, openForm } from '../../components/dialog.tsx'
import { TextAreaField } from '../../components/fields.tsx'
import { Notice, Page, pageOf, Section } from '../../components/page.tsx'
import { durationText, StatusBadge, Time } from '../../components/status-and-time.tsx'
import { linkTo, ruleLink, ThingLink, tryLink } from '../../components/thing-link.tsx'
import { CopyId, JsonView, KeyValueList, shortId } from '../../components/values.tsx'
import { errorText, hasEnded, originText, runText, useRunList } from './run-list.tsx'
import { Prompts } from './prompts.tsx'
import { deliveryText, emptyFields, Resent, Timeline } from './timeline.tsx'

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

/** The errors of runs that a rule avoids (contract README, "Rules"). */
const NEEDS_RULE = /^(needs_a_model|rules_needed|payload_incomplete|no_destination): /

export const RunPage = pageOf('getRun', RunDetails)

/** What a queued run waits for. */
function waitText({ steps }: RunDetailOut): string {
  const note = steps.findLast(({ kind }) => kind === 'note')?.data as { code?: string; text?: string } | undefined
  if (note?.code === 'source_paused' && note.text) return note.text
  return 'It waits for the earlier starts of its session, or for a free runner.'
}

/** Whether a model executes the run: its first step names the agent. */
function hasModel({ steps }: RunDetailOut): boolean {
  const first = steps.find(({ kind }) => kind === 'message')?.data as { agent?: string } | undefined
  return first?.agent !== undefined && first.agent !== 'builtin'
}

function RunDetails(run: RunDetailOut) {
  const isAdmin = useMe().role !== 'member'
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
          {NEEDS_RULE.test(error) ? (
            <Button label="Write the rule" variant="primary" link={ruleLink(workflow.id, run.id)} />
          ) : null}
        </Notice>
      ) : null}
      {run.status === 'succeeded'
        ? [...new Set(emptyFields(run))].map((names) => (
            <Notice key={names} kind="warning">
              The text had no {names}: sent as empty values.
            </Notice>
          ))
        : null}
      {run.status === 'queued' ? <Notice>{waitText(run)}</Notice> : null}
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

/** The payloads of a run that wait for an approval, with what an admin decides. */
function Approvals({ run }: { run: RunDetailOut }) {
  const waiting = run.approvals.filter(({ status }) => status === 'waiting')
  if (waiting.length === 0) return null
  return (
    <Section
      title="Waiting for approval"
      intro="A webhook source asks a person to approve what is sent. Later starts of the session wait behind this run."
    >
      <ul className="lines">
        {waiting.map((approval) => (
          <WaitingPayload key={approval.delivery_id} approval={approval} />
        ))}
      </ul>
    </Section>
  )
}

function WaitingPayload({ approval }: { approval: ApprovalOut }) {
  const { delivery_id: id, source_id: sourceId, source_name: name, payload, expires_at: until } = approval
  const { endpoint_url: url } = approval
  const isAdmin = useMe().role !== 'member'
  const params = { delivery_id: id }
  const askToApprove = () =>
    askToConfirm({
      title: 'Approve this payload?',
      text: `It is sent to ${name} exactly as shown, once.`,
      action: 'Approve and send',
      isHarmless: true,
      onConfirm: () => mutate('approveDelivery', { params }),
      done: 'The payload is approved.',
    })
  const askToDecline = () =>
    openForm({
      title: 'Decline this payload?',
      text: `It is never sent to ${name}.`,
      action: 'Decline',
      variant: 'danger',
      isTransient: true,
      savedText: 'The payload is declined.',
      values: { reason: '' },
      save: ({ reason }) => mutate('declineDelivery', { params, body: { reason: reason || null } }),
      fields: ({ field }) => (
        <TextAreaField
          rows={2}
          maxLength={APPROVAL_REASON_MAX_LENGTH}
          hint="Optional. The agent reads it, and it is in the error of the run."
          {...field('reason', 'Reason')}
        />
      ),
    })
  return (
    <li className="stack">
      <div className="row">
        <h3>
          To <ThingLink kind="webhook_source" id={sourceId} name={name} />
        </h3>
        <span className="muted">
          until <Time value={until} isExact />
        </span>
      </div>
      {url ? <pre>{url}</pre> : null}
      <JsonView label={`payload to ${name}`} value={payload} />
      {isAdmin ? (
        <div className="row">
          <Button label="Approve" variant="primary" icon="check" onClick={askToApprove} />
          <Button label="Decline" icon="close" onClick={askToDecline} />
        </div>
      ) : (
        <p className="muted">An admin of your organization decides.</p>
      )}
    </li>
  )
}
