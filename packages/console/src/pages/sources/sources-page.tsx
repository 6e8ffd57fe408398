import type { AppWebhookSourceOut } from '@workflow-service/contract'
import { toList, useMe, useRead } from '../../api/index.ts'
import { FilterSearch, ListPage, useFilters } from '../../components/data-list.tsx'
import { LastStatus, StatusBadge } from '../../components/status-badge.tsx'
import { linkTo } from '../../components/thing-link.tsx'

const MANY = 8

export function SourcesPage() {
  const isAdmin = useMe().role !== 'member'
  const filters = useFilters('search')
  const list = toList(useRead('listWebhookSources'))
  const search = filters.search?.toLowerCase() ?? ''
  const rows = list.rows.filter(({ name, endpoint_url: url }) => `${name}\n${url}`.toLowerCase().includes(search))
  return (
    <ListPage
      title="Webhook sources"
      intro="Your endpoints, to which agents send data. A workflow uses one by naming it in its description."
      create={isAdmin ? { label: 'New webhook source', link: { to: '/sources/new' } } : undefined}
      label="webhook sources"
      list={{ ...list, rows }}
      columns={[
        { header: 'Name', cell: ({ name }) => name },
        { header: 'Endpoint', cell: ({ endpoint_url: url }) => <Endpoint url={url} /> },
        { header: 'Verified', cell: (source) => <Verified source={source} /> },
        { header: 'Last delivery', cell: (source) => <Last request={source.last_payload} /> },
        { header: 'Signed', cell: (source) => (source.has_signing_secret ? 'Yes' : 'No'), isSecondary: true },
      ]}
      rowLink={({ id }) => linkTo('webhook_source', id)}
      filters={filters}
      controls={list.rows.length > MANY || search ? <FilterSearch name="search" label="Find a source" /> : null}
      empty={{
        icon: 'source',
        title: 'No webhook source yet',
        text: isAdmin
          ? 'Add the endpoint that receives what your agents send. It is verified with one request when you save it.'
          : 'An admin of your organization can add the endpoints to which agents send data.',
      }}
    />
  )
}

function Endpoint({ url }: { url: string }) {
  const { host, pathname } = URL.parse(url) ?? { host: url, pathname: '/' }
  return (
    <span className="muted" title={url}>
      {host + (pathname === '/' ? '' : pathname)}
    </span>
  )
}

function Verified({ source }: { source: AppWebhookSourceOut }) {
  const { verified_at: at, last_verification: last } = source
  if (last && last.outcome !== 'accepted' && last.outcome !== 'in_flight') return <Last request={last} />
  if (!at) return <StatusBadge status="unknown">Not verified</StatusBadge>
  return <LastStatus status="accepted" at={at} text="Verified" />
}

function Last({ request }: { request: AppWebhookSourceOut['last_payload'] }) {
  if (!request) return <span className="muted">None yet</span>
  return <LastStatus status={request.outcome} at={request.created_at} reason={request.reason} />
}
