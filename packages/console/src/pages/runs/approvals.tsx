import type { ApprovalOut, RunDetailOut } from '@workflow-service/contract'
import { APPROVAL_REASON_MAX_LENGTH } from '@workflow-service/contract/limits'
import { useMe, write } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { askToConfirm, openForm } from '../../components/dialog.tsx'
import { TextAreaField } from '../../components/fields.tsx'
import { Section } from '../../components/page.tsx'
import { ThingLink } from '../../components/thing-link.tsx'
import { Time } from '../../components/status-and-time.tsx'
import { JsonView } from '../../components/values.tsx'

/** The payloads of a run that wait for an approval, with what an admin decides. */
export function Approvals({ run }: { run: RunDetailOut }) {
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
  const isAdmin = useMe().role !== 'member'
  const params = { delivery_id: id }
  const askToApprove = () =>
    askToConfirm({
      title: 'Approve this payload?',
      text: `It is sent to ${name} exactly as shown, once.`,
      action: 'Approve and send',
      isHarmless: true,
      onConfirm: () => write('approveDelivery', { params }),
      done: 'The payload is approved.',
    })
  const askToDecline = () =>
    openForm({
      title: 'Decline this payload?',
      text: `It is never sent to ${name}.`,
      action: 'Decline',
      isDangerous: true,
      isTransient: true,
      savedText: 'The payload is declined.',
      values: { reason: '' },
      save: ({ reason }) => write('declineDelivery', { params, body: { reason: reason || null } }),
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
