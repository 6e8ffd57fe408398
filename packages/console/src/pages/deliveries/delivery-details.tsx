import { Link } from '@tanstack/react-router'
import type { DeliveryDetailOut } from '@workflow-service/contract'
import type { ReactNode } from 'react'
import { newId, write } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { curlHeader, curlText } from '../../components/curl.ts'
import { Table } from '../../components/data-list.tsx'
import { askToConfirm } from '../../components/dialog.tsx'
import { Notice } from '../../components/page.tsx'
import { durationText, StatusBadge, statusText, Time } from '../../components/status-and-time.tsx'
import { logLink, ThingLink } from '../../components/thing-link.tsx'
import { toast } from '../../components/toast.ts'
import { CopyBox, CopyId, JsonView, KeyValueList, LongText, shortId } from '../../components/values.tsx'
import { describeStatus, hintOfStatus } from '../sources/verification-cause.ts'

/** What each outcome says of whether the request arrived. */
const ARRIVED: Record<DeliveryDetailOut['outcome'], string> = {
  accepted: 'The endpoint accepted it.',
  rejected: 'The endpoint received it and did not accept it.',
  timed_out: 'There was no answer in time: the endpoint may have received it, and may have acted on it.',
  unreachable: 'There was no valid answer: the endpoint may have received it.',
  refused: 'The service did not send it.',
  invalid: 'It was not sent, because it does not follow the example.',
  unknown: 'The service stopped while it was sending: the endpoint may have received it.',
  in_flight: 'It is being sent.',
}

/** Everything about one request: what was sent, what came back, and what it belongs to. */
export function DeliveryDetails({ delivery }: { delivery: DeliveryDetailOut }) {
  const { kind, outcome, status, reason, answer, headers, workflow, mismatches, resent_as: resentAs } = delivery
  const { agent_answer: agentAnswer, rejected_answer: rejected, request_url: url, duration_ms: ms } = delivery
  const hint = kind === 'verification' && outcome === 'rejected' ? hintOfStatus(status ?? 0) : undefined
  const link = (id: string) => (
    <Link key={id} {...logLink(delivery.source_id, id)}>
      {shortId(id)}
    </Link>
  )
  const curlHeaders = headers.map(({ name, value }) => curlHeader(name, value))
  return (
    <>
      <div className="row" role="status">
        <StatusBadge status={outcome} />
        <span>
          {[status && `Status ${status}`, ms !== null && `after ${durationText(ms)}`].filter(Boolean).join(' ')}
        </span>
      </div>
      {outcome === 'accepted' ? null : (
        <Notice kind={outcome === 'in_flight' ? 'info' : 'danger'}>
          {reason ? (
            <p>{reason.replace(`The endpoint answered ${status}.`, () => describeStatus(status ?? 0, rejected))}</p>
          ) : null}
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
      <KeyValueList
        items={{
          Time: <Time value={delivery.created_at} isExact />,
          Workflow: workflow && <ThingLink kind="workflow" id={workflow.id} name={workflow.name} />,
          Run: delivery.run_id && <ThingLink kind="run" id={delivery.run_id} />,
          Session: delivery.session_id && <ThingLink kind="session" id={delivery.session_id} />,
          'Sent by': delivery.sent_by?.name,
          Repeats: delivery.resend_of && link(delivery.resend_of),
          'Sent again as': resentAs.length > 0 && <span className="row">{resentAs.map(link)}</span>,
          Delivery: <CopyId id={delivery.id} label="delivery id" />,
          Request: delivery.request_id && <CopyId id={delivery.request_id} label="request id" />,
        }}
      />
      <Part title={outcome === 'invalid' || outcome === 'refused' ? 'Request, not sent' : 'Request'}>
        <pre className="text">
          {`POST ${url ?? '(to the URL that the source had then)'}\n`}
          {headers.map(({ name, value }) => `${name}: ${value}`).join('\n')}
        </pre>
        <JsonView label="request body" value={delivery.request_body} />
        <details>
          <summary>As curl</summary>
          <CopyBox label="curl" text={curlText(url ?? 'https://example.com', curlHeaders, delivery.request_body)} />
        </details>
      </Part>
      {rejected === null ? null : (
        <Part title="Answer" intro="At most the first 4 KiB. Only people see it: the agent does not receive it.">
          <LongText text={rejected} />
        </Part>
      )}
      {kind === 'payload' && outcome === 'accepted' ? (
        <Part title="Answer" intro={answer === null && 'No text of one line and at most 300 characters.'}>
          {answer === null ? null : <LongText text={answer} />}
        </Part>
      ) : null}
      {agentAnswer === null ? null : (
        <Part title="What the agent received">
          <LongText text={agentAnswer} />
        </Part>
      )}
    </>
  )
}

function Part({ title, intro, children }: { title: string; intro?: ReactNode; children: ReactNode }) {
  return (
    <section className="part">
      <h2>{title}</h2>
      {intro ? <p className="muted">{intro}</p> : null}
      {children}
    </section>
  )
}

/** Whether the payload can be sent again: its outcome is known, and its source exists. */
export function canResend({ kind, outcome, endpoint_url: url }: DeliveryDetailOut): boolean {
  return kind === 'payload' && outcome !== 'in_flight' && url !== null
}

/** Sends the payload again after a confirmation. */
export function ResendButton({ delivery, onSent }: { delivery: DeliveryDetailOut; onSent: (id: string) => void }) {
  if (!canResend(delivery)) return null
  const { outcome, status, source_name: name } = delivery
  const times = delivery.resent_as.length
  const resend = () => {
    const id = newId()
    askToConfirm({
      title: `Send again to ${name ?? 'the endpoint'}`,
      text: (
        <>
          Sent before on <Time value={delivery.created_at} isExact />. {ARRIVED[outcome]}
          {status ? ` It answered ${status}.` : ''}
          {times > 0 ? ` It was sent again ${times === 1 ? 'once' : `${times} times`} since.` : ''}
        </>
      ),
      note: (
        <Notice kind={outcome === 'accepted' ? 'warning' : 'info'}>
          The same payload goes to <code>{delivery.endpoint_url}</code> as a new delivery, signed with the current
          secret. The endpoint may act a second time.
        </Notice>
      ),
      action: 'Send again',
      isHarmless: true,
      onConfirm: async () => {
        const sent = await write('resendDelivery', { params: { delivery_id: id }, body: { resend_of: delivery.id } })
        toast(`Sent again: ${statusText(sent.outcome).toLowerCase()}.`, sent.outcome === 'accepted' ? 'good' : 'bad')
        onSent(id)
      },
    })
  }
  return <Button label="Send again" icon="refresh" onClick={resend} />
}
