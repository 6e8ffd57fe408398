import { Link } from '@tanstack/react-router'
import type { DeliveryDetailOut } from '@workflow-service/contract'
import { useState } from 'react'
import { newId } from '../../api/new-id.ts'
import { useWrite } from '../../api/queries.ts'
import { Button } from '../../components/button.tsx'
import { CopyBox, CopyId } from '../../components/copy.tsx'
import { ConfirmDialog } from '../../components/dialog.tsx'
import { JsonView } from '../../components/json-view.tsx'
import { KeyValueList } from '../../components/key-value.tsx'
import { Notice } from '../../components/states.tsx'
import { StatusBadge, statusText } from '../../components/status-badge.tsx'
import { durationText, Time } from '../../components/time.tsx'
import { toast } from '../../components/toast.tsx'
import { LongText } from '../runs/timeline.tsx'

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
  const { outcome, status, reason, answer, mismatches, sent_by: sentBy } = delivery
  const isGood = outcome === 'accepted'
  const took = delivery.duration_ms === null ? null : durationText(delivery.duration_ms)
  const link = (id: string) => (
    <Link key={id} to="/sources/$sourceId/logs/$deliveryId" params={{ sourceId: delivery.source_id, deliveryId: id }}>
      …{id.slice(-8)}
    </Link>
  )
  return (
    <>
      <div className="row" role="status">
        <StatusBadge status={outcome} />
        <span>{[status && `Status ${status}`, took && `after ${took}`].filter(Boolean).join(' ')}</span>
      </div>
      {isGood ? null : (
        <Notice kind={outcome === 'in_flight' ? 'info' : 'danger'}>
          {reason ? <p>{reason}</p> : null}
          <p>{ARRIVED[outcome]}</p>
        </Notice>
      )}
      {mismatches && mismatches.length > 0 ? (
        <table className="data-list">
          <caption>Does not follow the example</caption>
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Problem</th>
            </tr>
          </thead>
          <tbody>
            {mismatches.map(({ field, message }) => (
              <tr key={`${field} ${message}`}>
                <th scope="row">
                  <code>{field}</code>
                </th>
                <td data-label="Problem">{message}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
      <KeyValueList
        items={[
          ['Time', <Time key="time" value={delivery.created_at} isExact />],
          [
            'Workflow',
            delivery.workflow ? (
              <Link to="/workflows/$workflowId" params={{ workflowId: delivery.workflow.id }}>
                {delivery.workflow.name}
              </Link>
            ) : null,
          ],
          [
            'Run',
            delivery.run_id ? (
              <Link to="/runs/$runId" params={{ runId: delivery.run_id }}>
                …{delivery.run_id.slice(-8)}
              </Link>
            ) : null,
          ],
          [
            'Session',
            delivery.session_id ? (
              <Link to="/sessions/$sessionId" params={{ sessionId: delivery.session_id }}>
                …{delivery.session_id.slice(-8)}
              </Link>
            ) : null,
          ],
          ['Sent by', sentBy?.name],
          ['Repeats', delivery.resend_of ? link(delivery.resend_of) : null],
          [
            'Sent again as',
            delivery.resent_as.length > 0 ? <span className="row">{delivery.resent_as.map(link)}</span> : null,
          ],
          ['Delivery', <CopyId key="id" id={delivery.id} isShort={false} label="delivery id" />],
          [
            'Request',
            delivery.request_id ? <CopyId id={delivery.request_id} isShort={false} label="request id" /> : null,
          ],
        ]}
      />
      <section className="stack">
        <h2>{outcome === 'invalid' || outcome === 'refused' ? 'Request, not sent' : 'Request'}</h2>
        <pre className="text">
          {`POST ${delivery.endpoint_url ?? '(the source was deleted)'}\n`}
          {delivery.headers.map(({ name, value }) => `${name}: ${value}`).join('\n')}
        </pre>
        <JsonView label="request body" value={delivery.request_body} />
        <details>
          <summary>As curl</summary>
          <CopyBox label="curl" text={curlOf(delivery)} />
        </details>
      </section>
      {delivery.kind === 'payload' && status !== null ? (
        <section className="stack">
          <h2>Answer</h2>
          {answer === null ? (
            <p className="muted">No text of one line and at most 300 characters.</p>
          ) : (
            <LongText text={answer} />
          )}
        </section>
      ) : null}
      {delivery.agent_answer === null ? null : (
        <section className="stack">
          <h2>What the agent received</h2>
          <LongText text={delivery.agent_answer} />
        </section>
      )}
    </>
  )
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

function curlOf({ endpoint_url: url, headers, request_body: body }: DeliveryDetailOut): string {
  return [
    `curl ${quoted(url ?? 'https://example.com')}`,
    ...headers.map(({ name, value }) => `-H ${quoted(`${name}: ${value}`)}`),
    `--data ${quoted(JSON.stringify(body))}`,
  ].join(' \\\n  ')
}

/** Whether the payload can be sent again: its outcome is known, and its source exists. */
export function canResend({ kind, outcome, endpoint_url: url }: DeliveryDetailOut): boolean {
  return kind === 'payload' && outcome !== 'in_flight' && url !== null
}

/** Sends the payload again after a confirmation. */
export function ResendButton({ delivery, onSent }: { delivery: DeliveryDetailOut; onSent: (id: string) => void }) {
  const [newDeliveryId, setNewDeliveryId] = useState<string>()
  const write = useWrite('resendDelivery')
  if (!canResend(delivery)) return null
  const times = delivery.resent_as.length
  return (
    <>
      <Button icon="refresh" onClick={() => setNewDeliveryId(newId())}>
        Send again
      </Button>
      {newDeliveryId ? (
        <ConfirmDialog
          title={`Send again to ${delivery.source_name ?? 'the endpoint'}`}
          action="Send again"
          isDangerous={false}
          onClose={() => setNewDeliveryId(undefined)}
          onConfirm={async () => {
            const params = { delivery_id: newDeliveryId }
            const sent = await write.mutateAsync({ params, body: { resend_of: delivery.id } })
            toast(
              `Sent again: ${statusText(sent.outcome).toLowerCase()}.`,
              sent.outcome === 'accepted' ? 'good' : 'bad',
            )
            onSent(newDeliveryId)
          }}
        >
          <p>
            Sent before on <Time value={delivery.created_at} isExact />. {ARRIVED[delivery.outcome]}
            {delivery.status ? ` It answered ${delivery.status}.` : ''}
          </p>
          {times > 0 ? <p>It was sent again {times === 1 ? 'once' : `${times} times`} since.</p> : null}
          <Notice kind={delivery.outcome === 'accepted' ? 'warning' : 'info'}>
            <p>
              The same payload goes to <code>{delivery.endpoint_url}</code> as a new delivery, signed with the current
              secret. The endpoint may act a second time.
            </p>
          </Notice>
        </ConfirmDialog>
      ) : null}
    </>
  )
}
