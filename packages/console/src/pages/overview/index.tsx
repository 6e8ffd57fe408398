import { Link, type LinkProps } from '@tanstack/react-router'
import type { OverviewOut } from '@workflow-service/contract'
import { OVERVIEW_WAITING_MAX } from '@workflow-service/contract/limits'
import { mutate, useIsAdmin, useRead } from '../../api/index.ts'
import { type Action, Button } from '../../components/button.tsx'
import { Icon } from '../../components/icons.tsx'
import { Loaded, Notice, Page, Section } from '../../components/page.tsx'
import { DAY_MS, StatusBadge, statusText, Time, useLastDay } from '../../components/status-and-time.tsx'
import { countText } from '../../components/text.ts'
import { linkTo, tryLink } from '../../components/thing-link.tsx'
import { useResend } from '../deliveries/resend-many.tsx'
import { errorText, NO_CODE } from '../runs/run-text.ts'
import { LastDayChart } from '../../components/chart.tsx'
import { countOf, DELIVERY_RESULTS } from '../../components/results.ts'
import { moneyText } from '../../components/values.tsx'

/** The webhook source and the workflow that the local stack makes (infra/local-stack/demo.yaml). */
const DEMO_IDS = ['c5d0b8a2-61f4-4c0b-8a55-2a8f0f1d7e21', '0e9c6a3b-2f7d-4d1e-b6c4-91d2e8f4c532']
const areOfDemo = (things: { id: string }[]) => things.length > 0 && things.every(({ id }) => DEMO_IDS.includes(id))

export function OverviewPage() {
  return (
    <Page title="Overview">
      <Loaded query={useRead('getOverview')}>
        {({ steps, ...overview }) => (
          <>
            <FirstSteps steps={steps} />
            {steps.has_run ? <LastDay {...overview} /> : null}
            {steps.has_run || overview.attention.length + overview.waiting_runs + overview.budgets.length > 0 ? (
              <Attention {...overview} />
            ) : null}
            {steps.has_run ? <LastDayChart measure="deliveries" /> : null}
          </>
        )}
      </Loaded>
    </Page>
  )
}

/** What leads to the first own delivery, from the data. Without an action, an admin does it. */
function FirstSteps({ steps }: { steps: OverviewOut['steps'] }) {
  const isAdmin = useIsAdmin()
  const workflows = useRead('listWorkflows', { query: { limit: 20 } }).data?.data
  const sources = useRead('listWebhookSources').data?.data
  if (!workflows || !sources) return null
  const active = workflows.filter(({ is_active: isActive }) => isActive)
  const workflow = active.find((each) => !areOfDemo([each])) ?? active[0] ?? workflows[0]
  const link = workflow && tryLink(workflow.id)
  const hasDemoSource = areOfDemo(sources.filter(({ verified_at: at }) => at !== null))
  const hasDemoWorkflow = areOfDemo(active)
  type Step = { isDone: boolean; title: string; text: string; action: Action | false }
  const start: Step = {
    isDone: steps.has_run && steps.has_delivery,
    title: 'Start a workflow, and see what was sent',
    text: 'Give it a text. The page of the run shows the delivery.',
    action: link
      ? { label: hasDemoWorkflow ? 'Try the demo' : `Try “${workflow.name}”`, link }
      : { label: 'Open workflows', link: { to: '/workflows' } },
  }
  const make: Step[] = [
    {
      isDone: steps.has_verified_source && !hasDemoSource,
      title: 'Make a webhook source (your endpoint)',
      text: hasDemoSource
        ? 'The demo has one. Make your own for your endpoint.'
        : 'An endpoint of yours that workflows send to.',
      action: isAdmin && { label: 'New webhook source', link: { to: '/sources/new' } },
    },
    {
      isDone: steps.has_startable_workflow && !hasDemoWorkflow,
      title: 'Make a workflow that names it',
      text: 'A task in plain words, such as “Send every order to Shop orders.”',
      action:
        link && !steps.has_startable_workflow
          ? { label: `See what “${workflow.name}” needs`, link }
          : { label: 'New workflow', link: { to: '/workflows/new' } },
    },
  ]
  // The demo needs nothing: it comes first.
  const list = hasDemoWorkflow ? [start, ...make] : [...make, start]
  if (list.every(({ isDone }) => isDone)) return null
  const next = list.find(({ isDone, action }) => !isDone && action)
  return (
    <Section title="First steps">
      <ol className="lines steps">
        {list.map(({ isDone, title, text, action }) => (
          <li key={title} className={isDone ? 'good' : undefined}>
            <Icon name={isDone ? 'check' : 'circle'} />
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
function LastDay({ starts, deliveries }: Pick<OverviewOut, 'starts' | 'deliveries'>) {
  const since = useLastDay()
  // What deliveries count is said with the runs that they belong to.
  const [accepted, notAccepted, unknown] = DELIVERY_RESULTS.map(({ label, names }) => {
    const ended = names.filter((name) => name !== 'in_flight')
    const count = countOf(deliveries, ended)
    return count > 0 && `${count.toLocaleString('en')} ${count === 1 ? 'delivery' : 'deliveries'} ${label}`
  })
  const tiles = [
    ['succeeded', 'good', accepted],
    ['failed', 'bad', notAccepted, unknown],
    ['cancelled', 'quiet'],
    ['queued', 'quiet'],
    ['running', 'quiet'],
    ['waiting', 'warn'],
  ] as const
  return (
    <Section title="Last 24 hours">
      <ul className="tiles">
        {tiles.map(([status, tone, ...details]) => {
          const count = starts[status] ?? 0
          return count === 0 && details.length === 0 ? null : (
            <li key={status} className={count > 0 ? tone : 'muted'}>
              <Link to="/runs" search={{ since, status }}>
                <strong>{count.toLocaleString('en')}</strong> {`Runs ${statusText(status).toLowerCase()}`}
                {details.map((detail) => (detail ? <span key={detail}>{detail}</span> : null))}
              </Link>
            </li>
          )
        })}
      </ul>
    </Section>
  )
}

type Group = OverviewOut['attention'][number]

/** What a group is: its words, where it is shown, and the filters of its deliveries. */
function describeGroup({ kind, id, title, code, status, newest_id: newestId, count }: Group): {
  text: string
  link: LinkProps
  filters?: Readonly<Record<string, string>>
} {
  if (kind === 'source_not_verified') return { text: `${title} was not verified`, link: linkTo('webhook_source', id) }
  if (kind === 'run_failed') {
    const search = { workflow: id, status: 'failed', needs_attention: code || NO_CODE, last: '30d' }
    return { text: `${title} failed`, link: count === 1 ? linkTo('run', newestId) : { to: '/runs', search } }
  }
  const filters = {
    source_id: id,
    outcome: code,
    needs_attention: 'yes',
    ...(status !== null && { status: `${status}` }),
  }
  return {
    text: code === 'rejected' ? `${title} answered ${status}` : `${title}: ${statusText(code).toLowerCase()}`,
    link: count === 1 ? linkTo('delivery', newestId) : { to: '/deliveries', search: { ...filters, last: '7d' } },
    filters,
  }
}

function Attention(props: Pick<OverviewOut, 'attention' | 'budgets' | 'waiting_runs'>) {
  const { attention, budgets, waiting_runs: waitingRuns } = props
  return (
    <Section
      title="Needs attention"
      intro={attention.length > 0 ? 'Of the last 7 days, until it was sent again and accepted, or you say so.' : null}
    >
      {waitingRuns > 0 ? (
        <Notice kind="warning">
          <Link to="/approvals">
            {waitingRuns === 1
              ? '1 run waits for approval'
              : `${countText(waitingRuns, OVERVIEW_WAITING_MAX)} runs wait for approval`}
          </Link>
        </Notice>
      ) : null}
      {budgets.map(({ workflow_id: id, name, budget, spent, currency }) => (
        <Notice key={id ?? 'month'} kind="warning">
          <Link to={id ? '/workflows/$workflow_id/agent' : '/organization'} params={{ workflow_id: id ?? '' }}>
            {`${name} has spent ${moneyText(spent, currency)} of ${moneyText(budget, currency)} this ${id ? 'day' : 'month'}`}
          </Link>
        </Notice>
      ))}
      {attention.length === 0 ? (
        <p className="muted">Nothing of the last 7 days needs attention.</p>
      ) : (
        <ul className="lines attention">
          {attention.map((group) => (
            <AttentionGroup key={`${group.kind} ${group.id} ${group.code} ${group.status}`} {...group} />
          ))}
        </ul>
      )}
    </Section>
  )
}

function AttentionGroup(group: Group) {
  const { kind, id, code, status, reason, at, count, is_more: isMore } = group
  const { text, link, filters } = describeGroup(group)
  const resend = useResend()
  const markDone = async () => {
    const body = { kind, id, code, status, until: at }
    while ((await mutate('markAttentionDone', { body })).is_more) continue
  }
  return (
    <li>
      <StatusBadge status="failed">{`${count.toLocaleString('en')}${isMore ? '+' : ''} ×`}</StatusBadge>
      <Link {...link} className="clamp">
        {text}
      </Link>
      <span className="muted clamp">{statusText(errorText(reason))}</span>
      <span className="muted">
        <Time value={at} />
      </span>
      <span className="row">
        {filters ? (
          <Button
            label={count === 1 ? 'Send again' : 'Send all again'}
            icon="refresh"
            aria-label={`Send again: ${text}`}
            onClick={() => resend({ ...filters, since: aWeekAgo(), until: untilWith(at) })}
          />
        ) : null}
        <Button
          label="Mark as done"
          icon="check"
          aria-label={`Mark as done: ${text}`}
          onClick={markDone}
          done="Marked as done."
        />
      </span>
    </li>
  )
}

/** The period of a list ends before its `until`. */
const untilWith = (at: string) => new Date(Date.parse(at) + 1).toISOString()
/** Since when what failed is counted. */
const aWeekAgo = () => new Date(Date.now() - 7 * DAY_MS).toISOString()
