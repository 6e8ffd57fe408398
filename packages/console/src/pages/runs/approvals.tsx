import { Link } from '@tanstack/react-router'
import type { ApprovalOut, RunDetailOut, WaitingApprovalOut } from '@workflow-service/contract'
import { LIST_MAX_LIMIT } from '@workflow-service/contract/limits'
import { type ReactNode, useState } from 'react'
import { invalid, mutate, useIsAdmin, useRead } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { tellingFields } from '../../components/delivery-columns.tsx'
import { askToConfirm, openForm } from '../../components/dialog.tsx'
import { Checkbox, TextAreaField } from '../../components/fields.tsx'
import { EmptyState, Loaded, Page, Section } from '../../components/page.tsx'
import { parseJson } from '../../components/parse-json.ts'
import { Time } from '../../components/status-and-time.tsx'
import { beginningOf } from '../../components/text.ts'
import { linkTo, ThingLink } from '../../components/thing-link.tsx'
import { toast } from '../../components/toast.ts'
import { JsonView } from '../../components/values.tsx'

/** The payloads of all runs that wait for an approval. */
export function ApprovalsPage() {
  return (
    <Page title="Approvals" intro="Payloads that a webhook source lets a person approve before they are sent.">
      <Loaded query={useRead('listApprovals')}>{({ data }) => <WaitingPayloads approvals={data} />}</Loaded>
    </Page>
  )
}

function WaitingPayloads({ approvals }: { approvals: readonly WaitingApprovalOut[] }) {
  const isAdmin = useIsAdmin()
  const [chosen, setChosen] = useState<readonly string[]>([])
  const all = approvals.map(({ delivery_id: id }) => id)
  // One that was decided meanwhile is not chosen any more.
  const ids = all.filter((id) => chosen.includes(id))
  const choose = (id: string, isChosen: boolean) =>
    setChosen(isChosen ? [...ids, id] : ids.filter((each) => each !== id))
  if (approvals.length === 0) return <EmptyState icon="check" title="Nothing waits for an approval" />
  const decide = async (decision: 'approved' | 'declined', reason: string | null) => {
    const body = { decision, delivery_ids: ids, reason }
    const { decided, not_waiting: rest } = await mutate('decideApprovals', { body })
    toast(`${decided} ${decision}.${rest > 0 ? ` ${rest} did not wait any more.` : ''}`)
  }
  const many = ids.length === 1 ? '1 payload' : `${ids.length} payloads`
  const askToApproveAll = () =>
    askToApprove(many, 'Each is sent to its URL exactly as shown, once.', () => decide('approved', null))
  const askToDeclineAll = () => askToDecline(many, 'They are never sent.', (reason) => decide('declined', reason))
  const off = { disabled: ids.length === 0 }
  return (
    <>
      {isAdmin ? (
        <div className="row">
          <Checkbox label="All" value={ids.length === all.length} onValue={(isOn) => setChosen(isOn ? all : [])} />
          <Button label={`Approve selected (${ids.length})`} icon="check" {...off} onClick={askToApproveAll} />
          <Button label={`Decline selected (${ids.length})`} icon="close" {...off} onClick={askToDeclineAll} />
        </div>
      ) : null}
      <ul className="lines">
        {approvals.map((approval) => (
          <WaitingPayload key={approval.delivery_id} approval={approval} run={approval}>
            {isAdmin ? (
              <Checkbox
                label={<span className="visually-hidden">{`Select the payload ${nameOf(approval)}`}</span>}
                value={ids.includes(approval.delivery_id)}
                onValue={(isOn) => choose(approval.delivery_id, isOn)}
              />
            ) : null}
          </WaitingPayload>
        ))}
      </ul>
      {all.length < LIST_MAX_LIMIT ? null : <p>These are the oldest {LIST_MAX_LIMIT}. Others follow them.</p>}
    </>
  )
}

/** The payloads of one run that wait. */
export function Approvals({ run }: { run: RunDetailOut }) {
  const waiting = run.approvals.filter(({ status }) => status === 'waiting')
  // A run that has failed sends no more.
  if (waiting.length === 0 || run.finished_at !== null) return null
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

function askToApprove(what: string, text: string, onConfirm: () => Promise<unknown>, done?: string) {
  askToConfirm({ title: `Approve ${what}?`, text, action: 'Approve and send', isHarmless: true, onConfirm, done })
}

function askToDecline(
  what: string,
  text: string,
  decline: (reason: string | null) => Promise<unknown>,
  savedText: string | null = null,
) {
  openForm({
    title: `Decline ${what}?`,
    text,
    action: 'Decline',
    variant: 'danger',
    isTransient: true,
    savedText,
    values: { reason: '' },
    save: ({ reason }) => decline(reason || null),
    fields: ({ field }) => (
      <TextAreaField
        rows={2}
        hint="Optional. The agent reads it, and it is in the error of the run."
        {...field('reason', 'Reason')}
      />
    ),
  })
}

/** Tells a payload from the others that wait. */
const nameOf = ({
  source_name: name,
  payload,
}: Pick<ApprovalOut, 'source_name'> & Pick<WaitingApprovalOut, 'payload'>) =>
  [`to ${name}`, beginningOf(tellingFields(payload), 100)].filter(Boolean).join(', ')

function WaitingPayload(props: {
  approval: Pick<ApprovalOut, keyof ApprovalOut & keyof WaitingApprovalOut>
  /** Beside the payloads of other runs. */
  run?: WaitingApprovalOut
  /** The checkbox that selects the payload. */
  children?: ReactNode
}) {
  const { approval, run, children } = props
  const { delivery_id: id, source_id: sourceId, source_name: name, payload, endpoint_url: url } = approval
  const isAdmin = useIsAdmin()
  const params = { delivery_id: id }
  const ofPayload = nameOf(approval)
  const approve = () => mutate('approveDelivery', { params, body: {} })
  const askToApproveIt = () =>
    askToApprove('this payload', `It is sent to ${name} exactly as shown, once.`, approve, 'The payload is approved.')
  const askToDeclineIt = () =>
    askToDecline(
      'this payload',
      `It is never sent to ${name}.`,
      (reason) => mutate('declineDelivery', { params, body: { reason } }),
      'The payload is declined.',
    )
  const askToEdit = () =>
    openForm({
      title: 'Edit and approve',
      text: `Sent to ${name} in place of the shown payload, once. It must follow the example of the source.`,
      action: 'Approve and send',
      savedText: 'The edited payload is approved.',
      values: { payload: JSON.stringify(payload, null, 2) },
      save: async ({ payload: text }) => {
        const { value, error } = parseJson(text)
        if (error) throw invalid('payload', error)
        return await mutate('approveDelivery', { params, body: { payload: value as Record<string, unknown> } })
      },
      fields: ({ field }) => <TextAreaField isCode rows={8} {...field('payload', 'Payload')} />,
    })
  return (
    <li className="stack">
      <div className="row">
        {children}
        <h3 aria-level={run && 2}>
          To <ThingLink kind="webhook_source" id={sourceId} name={name} />
        </h3>
        <span className="muted">
          until <Time value={approval.expires_at} isExact />
        </span>
        {run ? <Link {...linkTo('run', run.run_id)}>Run of {run.workflow?.name ?? 'a workflow'}</Link> : null}
      </div>
      {url ? <pre>{url}</pre> : null}
      {payload ? <JsonView label={`payload to ${name}`} value={payload} /> : <p>It is large: its run shows it.</p>}
      {isAdmin ? (
        <div className="row">
          <Button
            label="Approve"
            variant="primary"
            icon="check"
            aria-label={`Approve the payload ${ofPayload}`}
            onClick={askToApproveIt}
          />
          {payload ? <Button label="Edit" aria-label={`Edit the payload ${ofPayload}`} onClick={askToEdit} /> : null}
          <Button
            label="Decline"
            icon="close"
            aria-label={`Decline the payload ${ofPayload}`}
            onClick={askToDeclineIt}
          />
        </div>
      ) : (
        <p className="muted">An admin of your organization decides.</p>
      )}
    </li>
  )
}
