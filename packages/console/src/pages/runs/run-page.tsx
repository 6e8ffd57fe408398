import { Link, linkOptions, useParams } from '@tanstack/react-router'
import type { RunDetailOut } from '@workflow-service/contract'
import { useRead } from '../../api/queries.ts'
import { LinkButton } from '../../components/button.tsx'
import { CopyId } from '../../components/copy.tsx'
import { JsonView } from '../../components/json-view.tsx'
import { KeyValueList } from '../../components/key-value.tsx'
import { Page, Section } from '../../components/page.tsx'
import { Loaded, Notice } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { durationText, Time } from '../../components/time.tsx'
import { errorText, originText, runText } from './run-list.tsx'
import { Resent, Timeline } from './timeline.tsx'

export function RunPage() {
  const { runId } = useParams({ from: '/app/runs/$runId' })
  const query = useRead('getRun', { params: { run_id: runId } })
  return <Loaded query={query}>{(run) => <RunDetails key={run.id} run={run} />}</Loaded>
}

function RunDetails({ run }: { run: RunDetailOut }) {
  const waited = run.started_at ? Date.parse(run.started_at) - Date.parse(run.created_at) : undefined
  const tokens = run.input_tokens + run.output_tokens
  return (
    <Page
      title={`Run of ${run.workflow.name}`}
      back={{ label: 'Runs', link: linkOptions({ to: '/runs' }) }}
      meta={
        <>
          <span role="status">
            <StatusBadge status={run.status} />
          </span>
          <CopyId id={run.id} label="run id" />
        </>
      }
      actions={
        <LinkButton
          to="/workflows/$workflowId/try"
          params={{ workflowId: run.workflow.id }}
          search={{ again: run.id }}
          icon="run"
        >
          Start again
        </LinkButton>
      }
    >
      {run.error ? (
        <Notice kind="danger">
          <p>{errorText(run.error)}</p>
        </Notice>
      ) : null}
      {run.status === 'queued' ? (
        <Notice>It waits for the earlier starts of its session, or for a free runner.</Notice>
      ) : null}
      <KeyValueList
        items={[
          [
            'Workflow',
            <Link key="workflow" to="/workflows/$workflowId" params={{ workflowId: run.workflow.id }}>
              {run.workflow.name}
            </Link>,
          ],
          [
            'Session',
            <Link key="session" to="/sessions/$sessionId" params={{ sessionId: run.session_id }}>
              Start {run.number} of …{run.session_id.slice(-8)}
            </Link>,
          ],
          ['Started by', originText(run)],
          ['Accepted', <Time key="accepted" value={run.created_at} isExact />],
          ['Waited', waited === undefined ? null : durationText(waited)],
          ['Ran', runText(run) || null],
          ['Attempts', run.attempts > 1 ? run.attempts : null],
          [
            'Tokens',
            tokens > 0
              ? `${run.input_tokens.toLocaleString('en')} read, ${run.output_tokens.toLocaleString('en')} written`
              : null,
          ],
          ['Request', <CopyId key="request" id={run.request_id} isShort={false} label="request id" />],
        ]}
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
