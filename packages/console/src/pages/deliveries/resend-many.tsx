import { Link, type LinkProps, useNavigate } from '@tanstack/react-router'
import type { AppResponseBody } from '@workflow-service/contract'
import { RESEND_IDS_MAX } from '@workflow-service/contract/limits'
import { useEffect, useRef } from 'react'
import { callConfirmed, invalid, mutate, newId, useRead } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { openForm, showOnce } from '../../components/dialog.tsx'
import { SelectField } from '../../components/fields.tsx'
import { Notice, Page, pageOf } from '../../components/page.tsx'
import { statusText, Time } from '../../components/status-and-time.tsx'
import { announce } from '../../components/toast.ts'
import { KeyValueList } from '../../components/values.tsx'

/** The filters of the list of deliveries. */
type Filters = Readonly<Record<string, string | undefined>>

const RATES = { 1: '1 a second', 5: '5 a second', 10: '10 a second', 50: '50 a second', 100: '100 a second' }
const payloads = (count: number) => `${count.toLocaleString('en')} ${count === 1 ? 'payload' : 'payloads'}`
const jobLink = (id: string): LinkProps => ({ to: '/resends/$resend_job_id', params: { resend_job_id: id } })

/** Sends the payloads again that the list shows: a button, while the list has a filter for payloads. */
export function ResendMatching({ filters: { kind, ...filters } }: { filters: Filters }) {
  const ask = useResend()
  if (kind === 'verification' || !Object.values(filters).some(Boolean)) return null
  return <Button label="Send all again" icon="refresh" onClick={() => ask(filters)} />
}

export function ResendSelected({ ids }: { ids: readonly string[] }) {
  const ask = useResend()
  const send = async () => {
    const most = RESEND_IDS_MAX.toLocaleString('en')
    const advice = `Select at most ${most}, and the others afterwards; or filter the list and press "Send all again".`
    if (ids.length > RESEND_IDS_MAX) throw invalid('ids', advice)
    await ask({}, ids)
  }
  return <Button label={`Send selected again (${ids.length})`} icon="refresh" onClick={send} />
}

/** Returns what asks, after a preview, and sends the deliveries with these filters, or only these ones, again. */
export function useResend() {
  const navigate = useNavigate()
  return async ({ status, ...others }: Filters, ids?: readonly string[]) => {
    const matching = { ...others, ...(status && { status: Number(status) }), ...(ids && { ids: [...ids] }) }
    const preview = await callConfirmed('previewResends', { body: { ...matching, per_second: 1 } })
    const { total, sources, is_more: isMore, previewed_at: previewedAt } = preview
    const { sent = [], kept } = Object.groupBy(sources, ({ needs_approval: needs }) => (needs ? 'kept' : 'sent'))
    const counts = (of: typeof sources) => (
      <ul>
        {of.map(({ id, name, count }) => (
          <li key={id}>{`${name}: ${count.toLocaleString('en')}`}</li>
        ))}
      </ul>
    )
    const notSent = kept && (
      <>
        <p>Not sent, because their sources ask for approval:</p>
        {counts(kept)}
      </>
    )
    if (total === 0) {
      return showOnce({
        title: 'Nothing to send again',
        children: notSent ?? (
          <p>
            No payload is left: what matches, if anything does, was accepted since, is under way, or was deleted, or its
            source was. Change the filters, or open a delivery to see what became of it.
          </p>
        ),
        done: 'Close',
      })
    }
    const title = `Send ${payloads(total)} again`
    const jobId = newId()
    openForm({
      title,
      text: 'Each once, the oldest first, with the current secrets. Your endpoints may act twice.',
      action: title,
      isTransient: true,
      values: { rate: '10' },
      save: ({ rate }) =>
        mutate('createResendJob', {
          body: { id: jobId, ...matching, previewed_at: previewedAt, per_second: Number(rate) },
        }),
      onSaved: ({ id }) => navigate(jobLink(id)),
      fields: (form) => (
        <>
          {counts(sent)}
          {notSent}
          {isMore ? <p>More match: send the others again afterwards.</p> : null}
          <SelectField {...form.field('rate', 'How fast')} options={RATES} />
        </>
      ),
    })
  }
}

/** Says which jobs are sending now. */
export function RunningResends() {
  const jobs = useRead('listResendJobs').data?.data.filter(({ status }) => status === 'running') ?? []
  return jobs.map(({ id, total, done }) => (
    <Notice key={id}>
      <Link {...jobLink(id)}>
        Sending {payloads(total)} again: {done.toLocaleString('en')} done
      </Link>
    </Notice>
  ))
}

/** Payloads that are sent again together: how far it is, and a button that stops it. */
export const ResendJobPage = pageOf('getResendJob', ResendJob)

function ResendJob(job: AppResponseBody<'getResendJob'>) {
  const { id, status, total, done, not_sent: notSent, outcomes, finished_at: finishedAt } = job
  const isRunning = status === 'running'
  const sent = done - notSent
  const wasRunning = useRef(isRunning)
  useEffect(() => {
    // Only its end: a live region would read each count on the way.
    if (wasRunning.current && !isRunning) announce('Sending has ended.')
    wasRunning.current = isRunning
  }, [isRunning])
  const stop = () => mutate('stopResendJob', { params: { resend_job_id: id } })
  return (
    <Page
      title={
        isRunning
          ? `Sending ${payloads(total)} again`
          : `${sent < total ? `${sent.toLocaleString('en')} of ` : ''}${payloads(total)} sent again`
      }
      back={['Deliveries', { to: '/deliveries' }]}
      intro={isRunning ? 'It goes on without this page, and sends each payload once.' : null}
      actions={isRunning ? <Button label="Stop" icon="close" onClick={stop} done="Stopped." /> : null}
    >
      <div className="stack">
        <label>
          {done.toLocaleString('en')} of {total.toLocaleString('en')}{' '}
          {isRunning ? 'so far' : status === 'stopped' ? 'until it was stopped' : ''}
          <progress className="progress" value={done} max={total} />
        </label>
      </div>
      <KeyValueList
        items={{
          Status: isRunning ? 'Running' : status === 'stopped' ? 'Stopped' : 'Done',
          ...Object.fromEntries(
            Object.entries(outcomes).map(([outcome, count]) => [statusText(outcome), count.toLocaleString('en')]),
          ),
          'Not sent': notSent > 0 && `${notSent}: they or their source were deleted, or it asks for approval now`,
          Rate: `${job.per_second} a second`,
          'Started by': job.created_by,
          Started: <Time value={job.created_at} isExact />,
          Ended: finishedAt && <Time value={finishedAt} isExact />,
        }}
      />
    </Page>
  )
}
