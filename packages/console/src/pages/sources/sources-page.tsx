import { linkOptions } from '@tanstack/react-router'
import type { AppWebhookSourceOut } from '@workflow-service/contract'
import { toList, useMe, useRead } from '../../api/queries.ts'
import { LinkButton } from '../../components/button.tsx'
import { DataList, FilterSearch, useFilters } from '../../components/data-list.tsx'
import { Page } from '../../components/page.tsx'
import { EmptyState } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Time } from '../../components/time.tsx'

export function SourcesPage() {
  const { role } = useMe()
  const filters = useFilters('search')
  const list = toList(useRead('listWebhookSources'))
  const search = filters.values.search?.toLowerCase() ?? ''
  const rows = list.rows.filter(({ name, endpoint_url: url }) => `${name}\n${url}`.toLowerCase().includes(search))
  const create =
    role === 'member' ? null : (
      <LinkButton to="/sources/new" variant="primary" icon="plus">
        New webhook source
      </LinkButton>
    )
  return (
    <Page
      title="Webhook sources"
      intro="Your endpoints, to which agents send data. A workflow uses one by naming it in its description."
      actions={list.rows.length > 0 ? create : null}
    >
      <DataList
        label="webhook sources"
        list={{ ...list, rows }}
        columns={[
          { header: 'Name', cell: ({ name }) => name },
          { header: 'Endpoint', cell: (source) => <EndpointCell source={source} /> },
          { header: 'Verified', cell: (source) => <VerifiedCell source={source} /> },
          { header: 'Last delivery', cell: ({ last_payload: last }) => <LastCell last={last} /> },
          {
            header: 'Signed',
            cell: ({ has_signing_secret: isSigned }) => (isSigned ? 'Yes' : 'No'),
            isSecondary: true,
          },
        ]}
        rowLink={({ id }) => linkOptions({ to: '/sources/$sourceId', params: { sourceId: id } })}
        filters={
          list.rows.length > 8 || search ? <FilterSearch filters={filters} name="search" label="Find a source" /> : null
        }
        isFiltered={filters.isFiltered}
        empty={
          <EmptyState icon="source" title="No webhook source yet" action={create}>
            {create
              ? 'Add the endpoint that receives what your agents send. It is verified with one request when you save it.'
              : 'An admin of your organization can add the endpoints to which agents send data.'}
          </EmptyState>
        }
      />
    </Page>
  )
}

function EndpointCell({ source }: { source: AppWebhookSourceOut }) {
  const url = URL.parse(source.endpoint_url)
  return (
    <span className="muted" title={source.endpoint_url}>
      {url ? `${url.host}${url.pathname === '/' ? '' : url.pathname}` : source.endpoint_url}
    </span>
  )
}

function VerifiedCell({
  source: { verified_at: verifiedAt, last_verification: last },
}: {
  source: AppWebhookSourceOut
}) {
  if (last && last.outcome !== 'accepted' && last.outcome !== 'in_flight') {
    return <LastCell last={last} />
  }
  if (!verifiedAt) return <StatusBadge status="unknown">Not verified</StatusBadge>
  return (
    <span className="row">
      <StatusBadge status="accepted">Verified</StatusBadge>
      <span className="muted">
        <Time value={verifiedAt} />
      </span>
    </span>
  )
}

function LastCell({ last }: { last: AppWebhookSourceOut['last_payload'] }) {
  if (!last) return <span className="muted">None yet</span>
  return (
    <span className="row" title={last.reason ?? undefined}>
      <StatusBadge status={last.outcome} />
      <span className="muted">
        <Time value={last.created_at} />
      </span>
    </span>
  )
}
