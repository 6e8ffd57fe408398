import { useNavigate } from '@tanstack/react-router'
import type { AppResponseBody } from '@workflow-service/contract'
import { call, callConfirmed, invalid, queryClient, useMe, useRead, mutate } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { askToConfirm, openForm } from '../../components/dialog.tsx'
import { download } from '../../components/download.ts'
import { CheckboxGroup, TextField } from '../../components/fields.tsx'
import { editFormOptions, Form, useForm } from '../../components/form.tsx'
import { Loaded, Page, Section } from '../../components/page.tsx'
import { StatusBadge, Time } from '../../components/status-and-time.tsx'
import { Table } from '../../components/table.tsx'
import { reportTest } from '../../components/toast.ts'
import { CopyId, fromMicros, KeyValueList, moneyText, toMicros } from '../../components/values.tsx'

type Organization = AppResponseBody<'getOrganization'>

export function OrganizationPage() {
  return (
    <Page title="Organization">
      <Loaded query={useRead('getOrganization')}>{(organization) => <Details organization={organization} />}</Loaded>
    </Page>
  )
}

function Details({ organization }: { organization: Organization }) {
  const { role } = useMe()
  const { id, name, created_at: createdAt, is_suspended: isSuspended } = organization
  const navigate = useNavigate()
  const exportManifest = async () => download(name, 'yaml', (await call('exportManifest', {})).yaml)
  const remove = () =>
    askToConfirm({
      title: `Delete ${name}?`,
      text: 'This cannot be undone. Export the manifest first if you may want the workflows back.',
      action: 'Delete everything',
      typed: name,
      onConfirm: async () => {
        await callConfirmed('deleteOrganization', { body: { name } })
        queryClient.clear()
        // What was typed on the page was of what is deleted.
        await navigate({ to: '/sign-in', ignoreBlocker: true })
      },
    })
  return (
    <>
      <Section title="Details" isNarrow>
        {role === 'member' ? null : <NameForm organization={organization} />}
        <KeyValueList
          items={{
            Name: role === 'member' ? name : null,
            Id: <CopyId id={id} />,
            Created: <Time value={createdAt} isExact />,
            State: isSuspended ? 'Suspended: nothing of it runs or is sent.' : 'In use',
          }}
        />
      </Section>
      {role === 'member' ? null : (
        <>
          <Models organization={organization} />
          <Section
            title="Manifest"
            isNarrow
            intro={
              <>
                Everything of the organization as one YAML file, without secrets and keys: keep it in version control,
                and apply it with <code>wf apply</code>.
              </>
            }
          >
            <Button label="Export the manifest" icon="file" onClick={exportManifest} />
          </Section>
          <Notices />
        </>
      )}
      {role === 'owner' ? (
        <Section
          title="Delete the organization"
          isNarrow
          intro="With its workflows, sessions, runs, webhook sources, logs and keys."
        >
          <Button label="Delete the organization" icon="trash" variant="danger" onClick={remove} />
        </Section>
      ) : null}
    </>
  )
}

function Models({ organization }: { organization: Organization }) {
  return (
    <Section title="Models" intro="What runs may spend on models, and which of them members may choose." isNarrow>
      <Loaded query={useRead('listModels')}>
        {({ data }) => <ModelsForm organization={organization} names={data.map(({ name }) => name)} />}
      </Loaded>
      <KeyValueList items={{ 'Spent this month (UTC)': moneyText(organization.month_spent, organization.currency) }} />
    </Section>
  )
}

function ModelsForm({ organization, names }: { organization: Organization; names: readonly string[] }) {
  const form = useForm({
    ...editFormOptions(organization, (of) => ({
      month_budget: fromMicros(of.month_budget),
      offered_models: of.offered_models.length > 0 ? of.offered_models : [...names],
    })),
    save: async (values, version) => {
      const isAll = names.every((name) => values.offered_models.includes(name))
      // An empty list is stored for all of them.
      if (!isAll && values.offered_models.length === 0) throw invalid('offered_models', 'Choose at least one.')
      const body = {
        name: organization.name,
        month_budget: toMicros('month_budget', values.month_budget),
        offered_models: isAll ? [] : values.offered_models,
        version,
      }
      return await mutate('saveOrganization', { body })
    },
  })
  return (
    <Form form={form} action="Save models and budget" canReset>
      <TextField
        inputMode="decimal"
        hint="Of all workflows in a month (UTC). Empty: no limit."
        {...form.field(
          'month_budget',
          `Budget of a month${organization.currency ? ` (${organization.currency})` : ''}`,
        )}
      />
      <CheckboxGroup
        options={Object.fromEntries(names.map((name) => [name, name === 'builtin' ? 'The built-in agent' : name]))}
        {...form.field('offered_models', 'Members may choose')}
      />
    </Form>
  )
}

function NameForm({ organization }: { organization: Organization }) {
  const form = useForm({
    ...editFormOptions(organization, ({ name }) => ({ name })),
    save: (values, version) => mutate('saveOrganization', { body: { ...values, version } }),
  })
  return (
    <Form form={form} action="Save" canReset>
      <TextField {...form.field('name', 'Name')} />
    </Form>
  )
}

const STATUSES = {
  waiting: ['waiting', 'Waiting'],
  sent: ['accepted', 'Sent'],
  failed: ['failed', 'Not sent'],
} as const

const EVENTS = {
  'run.failed': 'A run failed',
  'run.cancelled': 'A run was cancelled',
  'approval.waiting': 'A payload waits for approval',
} as const

/** The webhook that gets the notices of the organization, and the newest notices. */
function Notices() {
  return (
    <Section
      title="Notices"
      isNarrow
      intro="Failures, waiting approvals, paused or failing sources and expiring keys, at most once an hour each. To a webhook, such as one of Slack; people choose email under Account."
    >
      <Loaded query={useRead('getNotices')}>{(notices) => <NoticeDetails {...notices} />}</Loaded>
    </Section>
  )
}

const askToRemove = () =>
  askToConfirm({
    title: 'Remove the webhook?',
    text: 'It gets no more notices.',
    action: 'Remove',
    onConfirm: () => mutate('deleteNoticeWebhook', {}),
    done: 'The webhook is removed.',
  })
const sendTest = async () => reportTest(await mutate('testNoticeWebhook', {}))

function NoticeDetails({ webhook, data }: AppResponseBody<'getNotices'>) {
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
      save: ({ signing_secret: secret, ...values }) =>
        mutate('saveNoticeWebhook', { body: { ...values, signing_secret: secret || undefined } }),
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
              cell: ({ status }) => <StatusBadge status={STATUSES[status][0]}>{STATUSES[status][1]}</StatusBadge>,
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
