import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import type { AppDeliveryOut, DeliveryDetailOut } from '@workflow-service/contract'
import { useEffect, useEffectEvent } from 'react'
import { mutate, newId, queryFor, useIsAdmin, useList, useRead } from '../../api/index.ts'
import { Button, IconButton } from '../../components/button.tsx'
import { useWorkflowName } from '../../components/pickers.tsx'
import { curlHeader, curlText } from '../../components/curl.ts'
import { ListPage } from '../../components/data-list.tsx'
import { askToConfirm, Dialog } from '../../components/dialog.tsx'
import { FilterPeriod, linkBeside, useFilters, useOpened } from '../../components/filters.tsx'
import { ErrorState, Loaded, Notice, Page, pageOf, Section, useTitle } from '../../components/page.tsx'
import { useShortcuts } from '../../components/shortcuts.ts'
import {
  DATE_TIME,
  durationText,
  StatusBadge,
  statusText,
  statusTexts,
  Time,
} from '../../components/status-and-time.tsx'
import { focusRow, Table } from '../../components/table.tsx'
import { beginningOf } from '../../components/text.ts'
import { linkTo, logLink, ThingLink } from '../../components/thing-link.tsx'
import { announce } from '../../components/toast.ts'
import { CopyBox, CopyId, AnswerText, JsonView, KeyValueList, shortId } from '../../components/values.tsx'
import {
  type DeliveryColumn as Column,
  oneLine,
  SHORT_COLUMNS,
  tellingFields,
} from '../../components/delivery-columns.tsx'
import { FilterWorkflow } from '../runs/run-list.tsx'
import { ResendMatching, ResendSelected, RunningResends } from './resend-many.tsx'
import { hintOfStatus, withAnswer } from '../sources/verification-cause.ts'

/** What each outcome says of whether the request arrived. */
const ARRIVED: Record<DeliveryDetailOut['outcome'], string> = {
  accepted: 'The endpoint accepted it.',
  rejected: 'The endpoint received it and did not accept it.',
  timed_out: 'There was no answer in time: the endpoint may have received it, and may have acted on it.',
  unreachable: 'There was no valid answer: the endpoint may have received it.',
  refused: 'The service did not send it.',
  invalid: 'It was not sent, because it does not follow the example.',
  unknown: 'The endpoint may have received it, and may have acted on it.',
  in_flight: 'It is being sent.',
}

const OUTCOMES = statusTexts(...(Object.keys(ARRIVED) as AppDeliveryOut['outcome'][]))
const KINDS = { payload: 'Payload', verification: 'Verification' }

const [TIME, OUTCOME, PAYLOAD] = SHORT_COLUMNS
const SOURCE: Column = { header: 'Source', cell: ({ source_name: name }) => oneLine(name ?? 'Deleted source') }
const TOOK: Column = {
  header: 'Took',
  cell: ({ duration_ms: ms }) => (ms === null ? '' : durationText(ms)),
  isNumber: true,
}
const KIND: Column = { header: 'Kind', cell: (delivery) => oneLine(kindText(delivery)), isSecondary: true }
const ANSWER: Column = {
  header: 'Answer or reason',
  cell: ({ reason, answer }) => (reason || answer ? <span className="muted clamp">{answer || reason}</span> : null),
  isOptional: true,
}
const ALL_COLUMNS = [TIME, OUTCOME, SOURCE, PAYLOAD, TOOK, KIND]
/** Of one source. */
const LOG_COLUMNS = [TIME, OUTCOME, PAYLOAD, TOOK, KIND, ANSWER]

const SOURCES = ['Webhook sources', { to: '/sources' }] as const

const openBeside = ({ id }: AppDeliveryOut) => linkBeside('open', id)

/** The statuses that people look for. Any other can be written into the address. */
const STATUS_CODES = Object.fromEntries(
  [200, 400, 401, 403, 404, 409, 422, 429, 500, 502, 503, 504].map((status) => [`${status}`, `${status}`]),
)
const ATTENTION = { yes: 'Needs attention', no: 'Accepted, or done' }
const SENT_AGAIN = { no: 'Not sent again', yes: 'Sent again' }

export { ResendJobPage } from './resend-many.tsx'

/** The deliveries to all webhook sources, or the log of one, which is no filter that could be cleared. */
export function DeliveriesPage() {
  const { source_id: sourceId, ...filters } = useFilters(
    'search',
    'source_id',
    'outcome',
    'status',
    'kind',
    'workflow_id',
    'sent_again',
    'needs_attention',
    'since',
    'until',
  )
  const sources = useRead('listWebhookSources').data?.data
  const names = Object.fromEntries(sources?.map(({ id, name }) => [id, name]) ?? [])
  const source = sourceId && names[sourceId]
  const isDeleted = Boolean(sourceId && sources && !source)
  // A source that is deleted has a log; one that never was is not found.
  const log = useQuery({
    ...queryFor('listDeliveries', { params: { source_id: sourceId ?? '' }, query: { limit: 1 } }),
    enabled: isDeleted,
  })
  const workflow = useWorkflowName(filters.workflow_id)
  const list = useList('listAllDeliveries', { query: { source_id: sourceId, ...filters } as never })
  const [openId, open] = useOpened('open')
  const at = list.rows.findIndex(({ id }) => id === openId)
  const [newer, older] = [list.rows[at - 1], list.rows[at + 1]]
  const openOlder = async () => {
    const next = older ?? (await list.loadOlder?.())?.[at + 1]
    if (next) open(next.id)
  }
  if (log.error && !log.data) return <ErrorState error={log.error} onRetry={log.refetch} isPage />
  const name = source || (isDeleted ? 'a deleted source' : undefined)
  const page = sourceId
    ? {
        title: name ? `Logs of ${name}` : 'Logs',
        back: source ? ([source, linkTo('webhook_source', sourceId)] as const) : SOURCES,
        intro: 'Every request to this endpoint and its answer.',
      }
    : { title: 'Deliveries', intro: 'Every request to your endpoints and its answer, of all webhook sources.' }
  return (
    <ListPage
      {...page}
      label="deliveries"
      list={list}
      columns={sourceId ? LOG_COLUMNS : ALL_COLUMNS}
      rowLink={openBeside}
      filters={filters}
      actionsOf={(ids) => <ResendSelected ids={ids} />}
      search="Order number, word or id"
      fields={{
        search: { label: 'Search' },
        source_id: { label: 'Source', options: isDeleted ? { ...names, [sourceId!]: 'a deleted source' } : names },
        outcome: { label: 'Outcome', options: OUTCOMES },
        status: { label: 'Status', options: STATUS_CODES },
        kind: { label: 'Kind', options: KINDS },
        sent_again: { label: 'Resends', options: SENT_AGAIN },
        needs_attention: { label: 'Attention', options: ATTENTION },
        workflow_id: { label: 'Workflow', text: () => workflow },
      }}
      controls={
        <>
          <FilterWorkflow name="workflow_id" />
          <FilterPeriod />
          {list.rows.length > 0 ? <ResendMatching filters={{ source_id: sourceId, ...filters }} /> : null}
        </>
      }
      empty={{
        icon: 'send',
        title: 'Nothing is in the log',
        text: 'Verifications and what agents send appear here.',
      }}
    >
      <RunningResends />
      {openId ? (
        <Drawer
          id={openId}
          onOpen={open}
          onNewer={newer && (() => open(newer.id))}
          onOlder={at >= 0 && (older ?? list.loadOlder) ? openOlder : undefined}
        />
      ) : null}
    </ListPage>
  )
}

/** What a delivery is, in words. */
function kindText({ kind, resend_of: resendOf, sent_by: by, run_id: runId, workflow }: AppDeliveryOut): string {
  if (kind === 'verification') return 'Verification'
  if (resendOf) return `Sent again by ${by?.name ?? 'a person or the operator'}`
  return runId && workflow ? `Payload of ${workflow.name}` : 'Payload'
}

const titleOf = ({ kind, resend_of: resendOf, source_name: source }: DeliveryDetailOut) =>
  `${kind === 'verification' ? 'Verification of' : resendOf ? 'Resent delivery to' : 'Delivery to'} ${source ?? 'an unsaved source'}`

/** A delivery beside a list, which stays where it is. `onOpen` opens another one, or only the list. */
function Drawer(props: {
  id: string
  onOpen: (id?: string) => void
  onNewer: (() => unknown) | undefined
  onOlder: (() => unknown) | undefined
}) {
  const { id, onOpen: open, onNewer, onOlder } = props
  const query = useRead('getDelivery', { params: { delivery_id: id } })
  const delivery = query.data
  const title = delivery ? titleOf(delivery) : 'Delivery'
  useTitle(title)
  // The dialog returns the focus to the row that was opened first.
  const focusShown = useEffectEvent(() => void focusRow(id))
  useEffect(() => () => focusShown(), [])
  // It arrives after the focus, and the heading stays with the focus when another delivery is shown.
  const announceShown = useEffectEvent(() => {
    if (!delivery) return
    const { kind, outcome, created_at: at, request_body: body } = delivery
    const texts = [title, DATE_TIME.format(Date.parse(at)), statusText(outcome)]
    announce([...texts, kind === 'payload' && beginningOf(tellingFields(body), 100)].filter(Boolean).join(', '))
  })
  const shownId = delivery?.id
  useEffect(() => {
    if (shownId) announceShown()
  }, [shownId])
  const neighbors = [
    { key: 'k', icon: 'up', label: 'Newer (k)', onClick: onNewer },
    { key: 'j', icon: 'down', label: 'Older (j)', onClick: onOlder },
  ] as const
  useShortcuts(Object.fromEntries(neighbors.map(({ key, onClick }) => [key, () => onClick?.()])), 1)
  return (
    <Dialog
      className="drawer"
      title={title}
      onClose={open}
      tools={neighbors.map(({ key, icon, label, onClick }) => (
        <IconButton key={key} icon={icon} label={label} disabled={!onClick} onClick={() => onClick?.()} />
      ))}
      actions={delivery && canResend(delivery) ? <ResendButton delivery={delivery} onSent={open} /> : null}
    >
      <Loaded query={query}>{(data) => <DeliveryDetails delivery={data} />}</Loaded>
    </Dialog>
  )
}

/** A delivery as a page: of a run, or found by its id. */
export const DeliveryPage = pageOf('getDelivery', Delivery)

function Delivery(delivery: DeliveryDetailOut) {
  const { source_id: sourceId, source_name: source } = delivery
  const navigate = useNavigate()
  return (
    <Page
      title={titleOf(delivery)}
      back={source ? [`Logs of ${source}`, logLink(sourceId)] : SOURCES}
      actions={<ResendButton delivery={delivery} onSent={(id) => void navigate(linkTo('delivery', id))} />}
    >
      <DeliveryDetails delivery={delivery} />
    </Page>
  )
}

/** Everything about one request: what was sent, what came back, and what it belongs to. */
export function DeliveryDetails({ delivery, isPart }: { delivery: DeliveryDetailOut; isPart?: boolean }) {
  const { kind, outcome, status, reason, headers, workflow, mismatches, resent_as: resentAs } = delivery
  const { rejected_answer: rejected, request_url: url, duration_ms: ms } = delivery
  const hint = kind === 'verification' && outcome === 'rejected' ? hintOfStatus(status ?? 0) : undefined
  const link = (id: string) => (
    <Link key={id} {...logLink(delivery.source_id, id)} title={id}>
      {shortId(id)}
    </Link>
  )
  const answers = [
    ['Answer', rejected, 'At most the first 4 KiB. Only people see it: the agent does not receive it.'],
    ['Answer', delivery.answer, ''],
    ['What the agent received', delivery.agent_answer, ''],
  ] as const
  const curlHeaders = headers.map(({ name, value }) => curlHeader(name, value))
  return (
    <>
      <div className="row" role="status">
        <StatusBadge status={outcome} />
        <span>
          {[status && `Status ${status}`, ms !== null && `after ${durationText(ms)}`].filter(Boolean).join(' ')}
        </span>
      </div>
      {outcome === 'accepted' || isPart ? null : (
        <Notice kind={outcome === 'in_flight' ? 'info' : 'danger'}>
          {reason ? <p>{withAnswer(reason, status ?? 0, rejected)}</p> : null}
          <p>{ARRIVED[outcome]}</p>
          {hint ? <p>{hint}</p> : null}
        </Notice>
      )}
      {mismatches && mismatches.length > 0 ? (
        <Table
          label="Does not follow the example"
          isLabelShown
          rows={mismatches.map((mismatch) => ({ ...mismatch, id: `${mismatch.field} ${mismatch.message}` }))}
          columns={[
            { header: 'Field', cell: ({ field }) => <code>{field}</code> },
            { header: 'Problem', cell: ({ message }) => message },
          ]}
        />
      ) : null}
      {isPart ? null : (
        <KeyValueList
          items={{
            Time: <Time value={delivery.created_at} isExact />,
            Workflow: workflow && <ThingLink kind="workflow" id={workflow.id} name={workflow.name} />,
            Run: delivery.run_id && <ThingLink kind="run" id={delivery.run_id} />,
            Session: delivery.session_id && <ThingLink kind="session" id={delivery.session_id} />,
            'Sent by': delivery.sent_by?.name,
            'Resend of': delivery.resend_of && <Resent id={delivery.resend_of} />,
            'Sent again by the agent': delivery.send_again && (
              <>
                {delivery.send_again.reason} {link(delivery.send_again.delivery_id)}
              </>
            ),
            'Sent again as': resentAs.length > 0 && <span className="row">{resentAs.map(link)}</span>,
            'Delivery id': <CopyId id={delivery.id} label="delivery id" />,
            'Request id': delivery.request_id && <CopyId id={delivery.request_id} label="request id" />,
          }}
        />
      )}
      <Section title={outcome === 'invalid' || outcome === 'refused' ? 'Request, not sent' : 'Request'}>
        <pre className="text">
          {`POST ${url ?? '(to the URL that the source had then)'}\n`}
          {linesOf(headers.map(({ name, value }) => [name, value]))}
        </pre>
        <JsonView label="request body" value={delivery.request_body} />
        <details>
          <summary>As curl</summary>
          <CopyBox label="curl" text={curlText(url ?? 'https://example.com', curlHeaders, delivery.request_body)} />
        </details>
      </Section>
      {answers.map(([title, text, intro]) =>
        text === null ? null : (
          <Section key={title + intro} title={title} intro={intro}>
            <AnswerText text={text} />
          </Section>
        ),
      )}
      {delivery.answer_headers ? (
        <Section title="Headers of the answer">
          <pre className="text">{linesOf(Object.entries(delivery.answer_headers))}</pre>
        </Section>
      ) : null}
    </>
  )
}

const linesOf = (headers: [string, string][]) => headers.map(([name, value]) => `${name}: ${value}`).join('\n')

function Resent({ id }: { id: string }) {
  const at = useRead('getDelivery', { params: { delivery_id: id } }).data?.created_at
  return <Link {...linkTo('delivery', id)}>the delivery of {at ? <Time value={at} isExact /> : shortId(id)}</Link>
}

/** Whether the payload can be sent again: its outcome is known, and its source exists. */
function canResend({ kind, outcome, endpoint_url: url }: DeliveryDetailOut): boolean {
  return kind === 'payload' && outcome !== 'in_flight' && url !== null
}

/** Sends the payload again after a confirmation. */
function ResendButton({ delivery, onSent }: { delivery: DeliveryDetailOut; onSent: (id: string) => void }) {
  const isAdmin = useIsAdmin()
  if (!canResend(delivery)) return null
  const { outcome, status, source_name: name, needs_approval: needsApproval } = delivery
  if (needsApproval && !isAdmin)
    return <p className="muted">Its source asks for approval: only an admin or owner can send it again.</p>
  const times = delivery.resent_as.length
  const resend = () => {
    const id = newId()
    askToConfirm({
      title: `Send again to ${name ?? 'the endpoint'}`,
      text: (
        <>
          Sent before on <Time value={delivery.created_at} isExact />. {ARRIVED[outcome]}
          {status && outcome !== 'accepted' ? ` It answered ${status}.` : ''}
          {times > 0 ? ` It was sent again ${times === 1 ? 'once' : `${times} times`} since.` : ''} Your endpoint gets
          the same payload again and may act twice.
          {needsApproval ? ' Its source asks for approval: by sending it again you approve it.' : ''}
        </>
      ),
      action: 'Send again',
      isHarmless: true,
      onConfirm: async () => {
        await mutate('resendDelivery', { params: { delivery_id: id }, body: { resend_of: delivery.id } })
        onSent(id)
      },
    })
  }
  return <Button label="Send again" icon="refresh" onClick={resend} />
}
