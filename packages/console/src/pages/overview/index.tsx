import { Link, type LinkProps } from '@tanstack/react-router'
import type { OverviewOut } from '@workflow-service/contract'
import { useMe, useRead } from '../../api/index.ts'
import { type Action, Button } from '../../components/button.tsx'
import { Icon } from '../../components/icons.tsx'
import { Page, Section } from '../../components/page.tsx'
import { Loaded, Notice } from '../../components/states.tsx'
import { StatusBadge, statusText } from '../../components/status-badge.tsx'
import { ThingLink, tryLink } from '../../components/thing-link.tsx'
import { Time, useNow } from '../../components/time.tsx'
import { errorText } from '../runs/run-list.tsx'
import { countOf, DELIVERY_RESULTS, RUN_RESULTS } from '../usage/results.ts'

const HOUR_MS = 3_600_000

export function OverviewPage() {
  const query = useRead('getOverview')
  return (
    <Page title="Overview">
      <Loaded query={query}>
        {(overview) => (
          <>
            {Object.values(overview.steps).every(Boolean) ? null : <FirstSteps steps={overview.steps} />}
            {overview.steps.has_run || overview.steps.has_verified_source ? (
              <>
                <LastDay overview={overview} />
                <Attention attention={overview.attention} waitingRuns={overview.waiting_runs} />
              </>
            ) : null}
          </>
        )}
      </Loaded>
    </Page>
  )
}

/** What is needed for the first delivery, from the data. Without an action, an admin does it. */
function FirstSteps({ steps }: { steps: OverviewOut['steps'] }) {
  const isAdmin = useMe().role !== 'member'
  const workflows = useRead('listWorkflows', { query: { limit: 20 } }).data?.data ?? []
  const workflow = workflows.find(({ is_active: isActive }) => isActive) ?? workflows[0]
  const link = workflow && tryLink(workflow.id)
  const list: { isDone: boolean; title: string; text: string; action: Action | false }[] = [
    {
      isDone: steps.has_verified_source,
      title: 'Verify a webhook source',
      text: 'The endpoint that receives what your agents send. Saving it sends one request to verify it.',
      action: isAdmin && { label: 'New webhook source', link: { to: '/sources/new' } },
    },
    {
      isDone: steps.has_startable_workflow,
      title: 'Make a workflow that can start',
      text: 'A task in plain words that names the webhook source.',
      action: link
        ? { label: `See what “${workflow.name}” needs`, link }
        : { label: 'New workflow', link: { to: '/workflows/new' } },
    },
    {
      isDone: steps.has_api_key,
      title: 'Make an API key',
      text: 'Your programs start workflows with it.',
      action: isAdmin && { label: 'Open API keys', link: { to: '/keys' } },
    },
    {
      isDone: steps.has_run,
      title: 'See the first run',
      text: 'Start a workflow with a text, and follow what the agent does and sends.',
      action: link
        ? { label: `Try “${workflow.name}”`, link }
        : { label: 'Open workflows', link: { to: '/workflows' } },
    },
  ]
  const next = list.find(({ isDone, action }) => !isDone && action)
  return (
    <Section title="First steps">
      <ol className="lines steps">
        {list.map(({ isDone, title, text, action }) => (
          <li key={title} className={isDone ? 'good' : undefined}>
            <Icon name={isDone ? 'check' : 'clock'} />
            <div>
              <h3>
                <span className="visually-hidden">{isDone ? 'Done: ' : 'To do: '}</span>
                {title}
              </h3>
              {isDone ? null : <p className="muted">{text}</p>}
            </div>
            {isDone ? null : action ? (
              <Button {...action} variant={title === next?.title ? 'primary' : 'secondary'} />
            ) : (
              <span className="muted">An admin of your organization does this.</span>
            )}
          </li>
        ))}
      </ol>
    </Section>
  )
}

/** Counts of the last 24 hours; each opens what it counts. */
function LastDay({ overview }: { overview: OverviewOut }) {
  const now = useNow()
  const since = new Date(now - (now % HOUR_MS) - 23 * HOUR_MS).toISOString()
  const runs = (names: readonly string[]) => ({ since, ...(names.length === 1 ? { status: names[0] } : {}) })
  const usage: LinkProps = { to: '/usage', search: { by: 'webhook_source', days: '1' } }
  const tiles: { label: string; tone: string; count: number; link: LinkProps }[] = [
    ...RUN_RESULTS.map(({ label, tone, names }) => {
      const link: LinkProps = { to: '/runs', search: runs(names) }
      return { label: `Runs ${label}`, tone, count: countOf(overview.starts, names), link }
    }),
    ...DELIVERY_RESULTS.map(({ label, tone, names }) => {
      return { label: `Deliveries ${label}`, tone, count: countOf(overview.deliveries, names), link: usage }
    }),
  ]
  return (
    <Section title="Last 24 hours">
      <ul className="tiles">
        {tiles.map(({ label, tone, count, link }) => (
          <li key={label} className={count > 0 ? tone : 'muted'}>
            <Link {...link}>
              <strong>{count.toLocaleString('en')}</strong> {label}
            </Link>
          </li>
        ))}
      </ul>
    </Section>
  )
}

const ATTENTION = {
  run_failed: { kind: 'run', text: 'Run failed' },
  delivery_not_accepted: { kind: 'delivery', text: 'Delivery not accepted' },
  source_not_verified: { kind: 'webhook_source', text: 'Verification failed' },
} as const

function Attention({ attention, waitingRuns }: Pick<OverviewOut, 'attention'> & { waitingRuns: number }) {
  return (
    <Section title="Needs attention" intro={attention.length > 0 ? 'Of the last 7 days, newest first.' : null}>
      {waitingRuns > 0 ? (
        <Notice kind="warning">
          <Link to="/runs" search={{ status: 'waiting' }}>
            {waitingRuns === 1 ? '1 run waits for approval' : `${waitingRuns} runs wait for approval`}
          </Link>
        </Notice>
      ) : null}
      {attention.length === 0 ? (
        <p className="muted">Nothing failed in the last 7 days.</p>
      ) : (
        <ul className="lines attention">
          {attention.map(({ kind, id, title, reason, at }) => (
            <li key={`${kind} ${id}`}>
              <StatusBadge status="failed">{ATTENTION[kind].text}</StatusBadge>
              <ThingLink kind={ATTENTION[kind].kind} id={id} name={title} />
              <span className="muted clamp">{statusText(errorText(reason))}</span>
              <span className="muted">
                <Time value={at} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}
