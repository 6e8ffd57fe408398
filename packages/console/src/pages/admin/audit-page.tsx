import { useNavigate } from '@tanstack/react-router'
import type { AppAnswer } from '@workflow-service/contract'
import { useList, useRead } from '../../api/queries.ts'
import { LinkButton } from '../../components/button.tsx'
import { CopyId } from '../../components/copy.tsx'
import { DataList, FilterPeriod, FilterSelect, useFilters } from '../../components/data-list.tsx'
import { Drawer } from '../../components/dialog.tsx'
import { KeyValueList } from '../../components/key-value.tsx'
import { Page } from '../../components/page.tsx'
import { EmptyState } from '../../components/states.tsx'
import { Time } from '../../components/time.tsx'
import { linkTo } from '../../layout/link-to.ts'

type AuditEvent = AppAnswer<'listAuditEvents'>['data'][number]

const KINDS = [
  ['workflow.', 'Workflows'],
  ['trigger.', 'Triggers'],
  ['file.', 'Files'],
  ['auto_run.', 'Schedules'],
  ['webhook_source.', 'Webhook sources'],
  ['delivery.', 'Deliveries'],
  ['session.', 'Sessions'],
  ['api_key.', 'API keys'],
  ['user.', 'People'],
  ['account.', 'Sign-ins and accounts'],
  ['organization.', 'Organization'],
  ['access.', 'Refused access'],
  ['manifest.', 'Manifest'],
] as const

const ACTORS = { person: '', operator: 'Operator (wf)', service: 'The service', stranger: 'Not signed in' } as const

/** `webhook_source.saved` → `Webhook source saved`. */
function actionText(action: string): string {
  const text = action.replaceAll(/[._]/g, ' ').replace('api key', 'API key')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function actorText({ actor }: AuditEvent): string {
  return actor.kind === 'person' ? actor.name : [ACTORS[actor.kind], actor.name].filter(Boolean).join(': ')
}

const FIELDS_SHOWN = 3

function changedText({ changes }: AuditEvent): string {
  const fields = changes.slice(0, FIELDS_SHOWN).map(({ field }) => field)
  const rest = changes.length - fields.length
  return [...fields, ...(rest > 0 ? [`${rest} more`] : [])].join(', ') || '–'
}

export function AuditPage() {
  const filters = useFilters('action', 'actor_id', 'target_id', 'since', 'until')
  const { values } = useFilters('event')
  const navigate = useNavigate()
  const people = useRead('listUsers', { query: { limit: 100 } })
  const list = useList('listAuditEvents', { query: filters.values })
  const event = list.rows.find((row) => row.id === values.event)
  return (
    <Page title="Audit log" intro="Every change, sign-in and refusal. Entries cannot be changed or deleted.">
      <DataList
        label="Audit log"
        list={list}
        isFiltered={filters.isFiltered}
        filters={
          <>
            <FilterSelect filters={filters} name="action" label="What" options={KINDS} />
            <FilterSelect
              filters={filters}
              name="actor_id"
              label="Who"
              options={(people.data?.data ?? []).map((user) => [user.id, user.email])}
            />
            <FilterPeriod filters={filters} />
            {filters.isFiltered ? (
              <LinkButton to="/audit" variant="ghost" icon="close">
                Clear
              </LinkButton>
            ) : null}
          </>
        }
        empty={<EmptyState icon="audit" title="Nothing has happened yet" />}
        rowLink={(row) => ({
          to: '/audit',
          search: { ...filters.values, event: row.id },
          resetScroll: false,
        })}
        columns={[
          { header: 'What', cell: (row) => actionText(row.action) },
          { header: 'On what', cell: (row) => row.target?.name ?? '–' },
          { header: 'Who', cell: (row) => <span className="nowrap">{actorText(row)}</span> },
          {
            header: 'Changed',
            cell: changedText,
            isSecondary: true,
          },
          { header: 'When', cell: (row) => <Time value={row.at} />, isNumber: true },
        ]}
      />
      {event ? (
        <EventDrawer
          event={event}
          onClose={() =>
            void navigate({
              to: '/audit',
              search: filters.values,
              resetScroll: false,
            })
          }
        />
      ) : null}
    </Page>
  )
}

const LINKED = ['workflow', 'webhook_source', 'run', 'session', 'delivery', 'user', 'api_key'] as const

function EventDrawer({ event, onClose }: { event: AuditEvent; onClose: () => void }) {
  const { target } = event
  const kind = LINKED.find((name) => name === target?.kind)
  return (
    <Drawer title={actionText(event.action)} onClose={onClose}>
      <KeyValueList
        items={[
          ['When', <Time key="when" value={event.at} isExact />],
          ['Who', actorText(event)],
          ['Address', event.address],
          ['On what', target ? `${actionText(target.kind)}: ${target.name}` : null],
          ['Id', target?.id ? <CopyId key="id" id={target.id} isShort={false} /> : null],
          ['Request', event.request_id ? <CopyId key="request" id={event.request_id} isShort={false} /> : null],
        ]}
      />
      {event.changes.map((change) => (
        <div key={change.field} className="versions">
          <strong>{change.field}</strong>
          <div>
            <p className="muted">Before</p>
            <pre>{valueText(change.old)}</pre>
          </div>
          <div>
            <p className="muted">After</p>
            <pre>{valueText(change.new)}</pre>
          </div>
        </div>
      ))}
      <div className="actions">
        {target?.id && kind && !event.action.endsWith('.deleted') ? (
          <LinkButton {...linkTo({ kind, id: target.id })}>Open it</LinkButton>
        ) : null}
        {target?.id ? (
          <LinkButton to="/audit" search={{ target_id: target.id }}>
            Everything that happened to it
          </LinkButton>
        ) : null}
      </div>
    </Drawer>
  )
}

function valueText(value: unknown): string {
  if (value === null || value === undefined) return '–'
  return typeof value === 'string' ? value || '(empty)' : JSON.stringify(value, null, 2)
}
