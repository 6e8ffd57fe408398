import type { RunDetailOut } from '@workflow-service/contract'
import { Button } from '../../components/button.tsx'
import { ListPage } from '../../components/data-list.tsx'
import { Notice, Page, pageOf, Section } from '../../components/page.tsx'
import { durationText, StatusBadge, Time } from '../../components/status-and-time.tsx'
import { ThingLink, tryLink } from '../../components/thing-link.tsx'
import { CopyId, JsonView, KeyValueList, shortId } from '../../components/values.tsx'
import { Approvals } from './approvals.tsx'
import { errorText, originText, runText, useRunList } from './run-list.tsx'
import { ANSWER_LINK, emptyFields, Resent, Timeline } from './timeline.tsx'

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

function RunDetails(run: RunDetailOut) {
  const { workflow, error, attempts, created_at: acceptedAt, started_at: startedAt } = run
  const rejected = run.deliveries.find(({ outcome }) => outcome === 'rejected')
  const tokens = [`${run.input_tokens.toLocaleString('en')} read`, `${run.output_tokens.toLocaleString('en')} written`]
  return (
    <Page
      title={`Run of ${workflow.name}`}
      back={['Runs', { to: '/runs' }]}
      meta={
        <>
          <span role="status">
            <StatusBadge status={run.status} />
          </span>
          <CopyId id={run.id} isShort label="run id" />
        </>
      }
      actions={<Button label="Start again" icon="run" link={tryLink(workflow.id, { again: run.id })} />}
    >
      {error ? (
        <Notice kind="danger">
          <p>{errorText(error)}</p>
          {rejected ? <ThingLink kind="delivery" id={rejected.id} name={ANSWER_LINK} /> : null}
        </Notice>
      ) : null}
      {run.status === 'succeeded'
        ? [...new Set(emptyFields(run))].map((names) => (
            <Notice key={names} kind="warning">
              The text had no {names}: sent as empty values.
            </Notice>
          ))
        : null}
      {run.status === 'queued' ? (
        <Notice>It waits for the earlier starts of its session, or for a free runner.</Notice>
      ) : null}
      <Approvals run={run} />
      <KeyValueList
        items={{
          Workflow: <ThingLink kind="workflow" id={workflow.id} name={workflow.name} />,
          Session: (
            <ThingLink kind="session" id={run.session_id} name={`Start ${run.number} of ${shortId(run.session_id)}`} />
          ),
          'Started by': originText(run),
          Accepted: <Time value={acceptedAt} isExact />,
          Waited: startedAt && durationText(Date.parse(startedAt) - Date.parse(acceptedAt)),
          Ran: runText(run) || null,
          Attempts: attempts > 1 && attempts,
          Tokens: run.input_tokens + run.output_tokens > 0 && tokens.join(', '),
          Request: <CopyId id={run.request_id} label="request id" />,
        }}
      />
      <Section title="Timeline">
        <Timeline run={run} />
      </Section>
      <Resent run={run} />
      <details>
        <summary>Raw journal</summary>
        <JsonView label="journal" value={run.steps} />
      </details>
    </Page>
  )
}
