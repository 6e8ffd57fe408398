import type { AppAnswer } from '@workflow-service/contract'
import { mutate, useRead } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { Table } from '../../components/data-list.tsx'
import { askToConfirm, openForm } from '../../components/dialog.tsx'
import { CheckboxGroup, TextField } from '../../components/fields.tsx'
import { Loaded, Section } from '../../components/page.tsx'
import { StatusBadge, Time } from '../../components/status-and-time.tsx'
import { reportTest } from '../../components/toast.ts'

const STATUSES = { waiting: 'waiting', sent: 'accepted', failed: 'failed' } as const
const STATUS_TEXTS = { waiting: 'Waiting', sent: 'Sent', failed: 'Not sent' } as const

const EVENTS = {
  'run.failed': 'A run failed',
  'run.cancelled': 'A run was cancelled',
  'approval.waiting': 'A payload waits for approval',
} as const

/** The webhook that gets the notices of the organization, and the newest notices. */
export function Notices() {
  return (
    <Section
      title="Notices"
      isNarrow
      intro="Failures, waiting approvals, paused or failing sources and expiring keys, at most once an hour each. To a webhook, such as one of Slack; people choose email under Account."
    >
      <Loaded query={useRead('getNotices')}>{(notices) => <Details {...notices} />}</Loaded>
    </Section>
  )
}

const askToRemove = () =>
  askToConfirm({
    title: 'Remove the webhook?',
    text: 'It gets no more notices.',
    action: 'Remove',
    onConfirm: () => mutate('deleteNoticeWebhook', {}),
  })
const sendTest = async () => reportTest(await mutate('testNoticeWebhook', {}))

function Details({ webhook, data }: AppAnswer<'getNotices'>) {
  const edit = () =>
    openForm({
      title: 'Webhook for notices',
      text: 'Its requests have a JSON body with type, text and data. With a secret, they are signed like payloads.',
      action: 'Save',
      values: {
        url: webhook?.url ?? '',
        signing_secret: '',
        events: webhook?.events ?? [],
      },
      save: ({ url, signing_secret: secret, events }) =>
        mutate('saveNoticeWebhook', {
          body: { url, events, ...(secret ? { signing_secret: secret } : {}) },
        }),
      fields: ({ field }) => (
        <>
          <TextField type="url" {...field('url', 'URL')} />
          <TextField
            hint={webhook?.has_signing_secret ? 'Empty: the stored one is kept.' : 'Optional.'}
            {...field('signing_secret', 'Signing secret')}
          />
          <CheckboxGroup options={EVENTS} {...field('events', 'Events for programs, one for each run')} />
        </>
      ),
    })
  return (
    <div className="stack">
      {webhook ? <p className="url">{webhook.url}</p> : null}
      <div className="row">
        <Button label={webhook ? 'Change the webhook' : 'Set a webhook'} icon="source" onClick={edit} />
        {webhook ? <Button label="Send a test" icon="send" onClick={sendTest} /> : null}
        {webhook ? <Button label="Remove" icon="trash" onClick={askToRemove} /> : null}
      </div>
      {data.length > 0 ? (
        <Table
          label="Newest notices"
          isLabelShown
          rows={data}
          columns={[
            { header: 'Time', cell: ({ created_at: at }) => <Time value={at} /> },
            {
              header: 'Status',
              cell: ({ status }) => <StatusBadge status={STATUSES[status]}>{STATUS_TEXTS[status]}</StatusBadge>,
            },
            { header: 'To', cell: ({ channel, recipient }) => (channel === 'webhook' ? 'Webhook' : recipient) },
            {
              header: 'Notice',
              cell: ({ text, error }) => <span className="clamp">{error ? `${text} (${error})` : text}</span>,
            },
          ]}
        />
      ) : null}
    </div>
  )
}
