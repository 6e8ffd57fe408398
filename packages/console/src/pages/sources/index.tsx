import { Link } from '@tanstack/react-router'
import type { AppListedWebhookSourceOut, AppWebhookSourceOut, WebhookVerification } from '@workflow-service/contract'
import { WAITING_COUNTED_MAX } from '@workflow-service/contract/limits'
import type { ReactNode } from 'react'
import { call, mutate, toList, useIsAdmin, useMe, useRead } from '../../api/index.ts'
import { type Action, Button } from '../../components/button.tsx'
import { ListPage } from '../../components/data-list.tsx'
import { askToConfirm, useDeletion } from '../../components/dialog.tsx'
import { LastDayChart } from '../../components/chart.tsx'
import { useFilters } from '../../components/filters.tsx'
import { Menu } from '../../components/menu.tsx'
import { Notice, Page, pageOf, Section } from '../../components/page.tsx'
import { LastStatus, StatusBadge, Time } from '../../components/status-and-time.tsx'
import { Table } from '../../components/table.tsx'
import { linkTo, logLink, ThingLink } from '../../components/thing-link.tsx'
import { countText, fold } from '../../components/text.ts'
import { toast } from '../../components/toast.ts'
import { CopyId, JsonView, KeyValueList } from '../../components/values.tsx'
import { SHORT_COLUMNS } from '../../components/delivery-columns.tsx'
import { SourceForm } from './source-form.tsx'

export function SourcesPage() {
  const isAdmin = useIsAdmin()
  const filters = useFilters('search')
  const list = toList(useRead('listWebhookSources'))
  const search = fold(filters.search ?? '')
  const rows = list.rows.filter(({ name, endpoint_url: url }) => fold(`${name}\n${url}`).includes(search))
  return (
    <ListPage
      title="Webhook sources"
      intro="Your endpoints, to which agents send data. A workflow uses one by naming it in its task."
      create={isAdmin ? { label: 'New webhook source', link: { to: '/sources/new' } } : undefined}
      label="webhook sources"
      list={{ ...list, rows }}
      columns={[
        { header: 'Name', cell: ({ name }) => name },
        { header: 'Endpoint', cell: ({ endpoint_url: url }) => <Url url={url} />, isOptional: true },
        { header: 'Verified', cell: (source) => <Verified source={source} /> },
        { header: 'Last delivery', cell: (source) => <Last request={source.last_payload} /> },
        { header: 'Signed', cell: (source) => (source.has_signing_secret ? 'Yes' : 'No'), isSecondary: true },
      ]}
      rowLink={({ id }) => linkTo('webhook_source', id)}
      filters={filters}
      search="Find a source"
      empty={{
        icon: 'source',
        title: 'No webhook source yet',
        text: isAdmin
          ? 'Add the endpoint that receives what your agents send. It is verified with one request when you save it.'
          : 'An admin of your organization can add the endpoints to which agents send data.',
      }}
    />
  )
}

const Url = ({ url }: { url: string }) => (
  <span className="muted clamp url" title={url}>
    {url}
  </span>
)

function Verified({ source }: { source: AppListedWebhookSourceOut }) {
  const { verified_at: at, last_verification: last, paused_at: pausedAt } = source
  if (pausedAt) return <LastStatus status="waiting" at={pausedAt} text="Paused" />
  if (last && last.outcome !== 'accepted' && last.outcome !== 'in_flight') return <Last request={last} />
  if (!at) return <StatusBadge status="unknown">Not verified</StatusBadge>
  return <LastStatus status="accepted" at={at} text="Verified" />
}

function Last({ request }: { request: AppWebhookSourceOut['last_payload'] }) {
  if (!request) return <span className="muted">None in the log</span>
  return <LastStatus status={request.outcome} at={request.created_at} reason={request.reason} />
}

export function NewSourcePage() {
  const isAdmin = useIsAdmin()
  return (
    <Page
      title="New webhook source"
      back={['Webhook sources', { to: '/sources' }]}
      intro="An endpoint of yours that workflows send to."
    >
      {isAdmin ? (
        <div className="two-columns">
          <SourceForm />
          <FirstRequests />
        </div>
      ) : (
        <Notice>Only admins can add webhook sources. Ask an admin of your organization.</Notice>
      )}
    </Page>
  )
}

const TEST_BODY: WebhookVerification = {
  type: 'service.webhook.verification',
  organization_id: '…',
  source_id: '…',
  data: { target_url: 'the URL', signing_secret: 'the secret, or null', body_example: { '…': 'the example body' } },
}

/** What an endpoint gets, for the person who writes it. */
function FirstRequests() {
  return (
    <aside className="card stack">
      <h2>What your endpoint receives</h2>
      <p>First one test request, a POST with this body. Any status from 200 to 299 within 10 seconds confirms it:</p>
      <JsonView label="test request" value={TEST_BODY} />
      <p>
        Then a POST with the fields of the example body whenever a workflow sends to it, each once. A status from 200 to
        299 accepts it; with another one, what you answer is shown here.
      </p>
      <p className="muted">Its type tells a test request from the others: nothing is to be processed.</p>
    </aside>
  )
}

export const SourcePage = pageOf('getWebhookSource', SourceDetails)

function SourceDetails(source: AppWebhookSourceOut) {
  const { id, name, last_verification: lastVerification, last_payload: lastPayload } = source
  const isAdmin = useIsAdmin()
  const askToDelete = useDeletion()
  const params = { source_id: id }
  const isVerified = lastVerification?.outcome === 'accepted'
  const isNew = source.verified_at && isVerified && !lastPayload
  const test = async () => {
    const { outcome, reason } = await mutate('testWebhookSource', { params })
    if (outcome === 'accepted') toast('The endpoint accepted the test request.')
    else toast(`The endpoint did not accept the test request. ${reason ?? ''}`, 'bad')
  }
  const remove = () =>
    askToDelete({
      name,
      text: 'Agents can no longer send to this endpoint; workflows that name it find no source. Payloads to it that wait for an approval are declined. Its log stays readable.',
      action: 'Delete webhook source',
      remove: () => call('deleteWebhookSource', { params }),
      list: '/sources',
    })
  return (
    <Page
      title={name}
      back={['Webhook sources', { to: '/sources' }]}
      meta={<CopyId id={id} isShort label="source id" />}
      actions={
        <>
          <Button label="Logs" icon="audit" link={logLink(id)} />
          {isAdmin ? <Button label="Test now" icon="send" onClick={test} /> : null}
          {isAdmin ? (
            <Menu
              label="More actions"
              items={[
                !source.paused_at && { label: 'Pause', icon: 'pause', onClick: () => askToPause(source) },
                { label: 'Delete', icon: 'trash', variant: 'danger', onClick: remove },
              ]}
            />
          ) : null}
        </>
      }
    >
      {isNew ? (
        <ActionNotice
          kind="good"
          action={{
            label: 'Use it in a workflow',
            variant: 'primary',
            link: { to: '/workflows/new', search: { source: name } },
          }}
        >
          Created. Your endpoint accepted the <Link {...logLink(id, lastVerification.id)}>test request</Link>. Next:
        </ActionNotice>
      ) : null}
      <PauseNotice source={source} />
      <KeyValueList
        items={{
          Verified: !isVerified && <Time value={source.verified_at} none="Never: it was saved without verification" />,
          'Last verification': !isNew && (
            <LastRequest sourceId={id} request={lastVerification} none="None in the log" />
          ),
          'Last delivery': <LastRequest sourceId={id} request={lastPayload} none="None in the log" />,
          URL: !isAdmin && source.endpoint_url,
          'When to send here': !isAdmin && source.description !== '' && source.description,
          Signed: !isAdmin && (source.has_signing_secret ? 'Yes' : 'No'),
        }}
      />
      <div className="two-columns">
        {isAdmin ? (
          <SourceForm source={source} />
        ) : (
          <Section title="Example body" intro="Every request has these fields.">
            <JsonView label="example body" value={source.example_request_body} />
          </Section>
        )}
        <Activity source={source} />
      </div>
    </Page>
  )
}

function askToPause({ id, name }: AppWebhookSourceOut) {
  askToConfirm({
    title: `Pause ${name}?`,
    text: 'Nothing is sent to it until someone resumes it. Runs wait until then, and go on in their order. One that has waited for 3 days fails.',
    action: 'Pause',
    isHarmless: true,
    onConfirm: () => mutate('pauseWebhookSource', { params: { source_id: id } }),
    done: `${name} is paused.`,
  })
}

/** A note with what a person can do about it. */
function ActionNotice(props: { kind: 'good' | 'warning' | 'danger'; action: Action | false; children: ReactNode }) {
  return (
    <Notice kind={props.kind}>
      <div className="row">
        <span>{props.children}</span>
        {props.action ? <Button {...props.action} /> : null}
      </div>
    </Notice>
  )
}

/** Says that the source is paused, or offers it because its payloads fail. */
function PauseNotice({ source }: { source: AppWebhookSourceOut }) {
  const { id, paused_at: pausedAt, paused_by: by } = source
  const { waiting_runs: runs = 0, failing } = source.state ?? {}
  const isAdmin = useIsAdmin()
  const { is_suspended: isSuspended } = useMe().organization
  if (pausedAt) {
    const onClick = () => mutate('resumeWebhookSource', { params: { source_id: id } })
    const when = isSuspended ? 'once the organization is not suspended any more' : 'now'
    const done = `Resumed. What waited is sent ${when}.`
    const resume = { label: 'Resume', variant: 'primary', onClick, done } as const
    const what =
      runs === 0 ? 'Payloads wait' : `${countText(runs, WAITING_COUNTED_MAX)} ${runs === 1 ? 'run waits' : 'runs wait'}`
    return (
      <ActionNotice kind="warning" action={isAdmin && resume}>
        Paused by {by} <Time value={pausedAt} />. {what} until it is resumed, up to 3 days.
      </ActionNotice>
    )
  }
  if (!failing) return null
  return (
    <ActionNotice kind="danger" action={isAdmin && { label: 'Pause it', onClick: () => askToPause(source) }}>
      {countText(failing.count, WAITING_COUNTED_MAX)} payloads in a row were not accepted, since{' '}
      <Time value={failing.since} isExact />.
    </ActionNotice>
  )
}

const SHOWN_DELIVERIES = 8

/** What a source did lately, and who uses it. */
function Activity({ source: { id } }: { source: AppWebhookSourceOut }) {
  const params = { source_id: id }
  const deliveries = useRead('listDeliveries', { params, query: { kind: 'payload', limit: SHOWN_DELIVERIES } }).data
    ?.data
  const workflows = useRead('listSourceWorkflows', { params }).data?.data
  return (
    <div className="stack">
      <LastDayChart measure="deliveries" of={{ by: 'webhook_source', thing_id: id }} />
      {deliveries && deliveries.length > 0 ? (
        <Section title="Last deliveries" actions={<Button label="All" className="small" link={logLink(id)} />}>
          <Table
            label="Last deliveries"
            rows={deliveries}
            columns={SHORT_COLUMNS}
            rowLink={(delivery) => logLink(id, delivery.id)}
          />
        </Section>
      ) : null}
      {workflows ? (
        <Section title="Used by" intro={workflows.length === 0 ? 'No workflow names it.' : undefined}>
          <ul className="lines">
            {workflows.map((workflow) => (
              <li key={workflow.id} className="row">
                <ThingLink kind="workflow" id={workflow.id} name={workflow.name} />
                {workflow.is_active ? null : <span className="muted">switched off</span>}
              </li>
            ))}
          </ul>
        </Section>
      ) : null}
    </div>
  )
}

/** What the endpoint last answered, with its entry in the log. */
function LastRequest(props: { sourceId: string; request: AppWebhookSourceOut['last_payload']; none: string }) {
  const { sourceId, request, none } = props
  if (!request) return <span className="muted">{none}</span>
  return (
    <span className="row">
      <StatusBadge status={request.outcome} />
      <Link {...logLink(sourceId, request.id)}>
        <span className="visually-hidden">Open the request of </span>
        <Time value={request.created_at} />
      </Link>
      {request.reason ? <span className="muted">{request.reason}</span> : null}
    </span>
  )
}
