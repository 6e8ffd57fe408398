import { Link, linkOptions, useNavigate, useParams } from '@tanstack/react-router'
import type { AppAnswer, AppWebhookSourceOut } from '@workflow-service/contract'
import { useState } from 'react'
import { call } from '../../api/call.ts'
import { refresh, useMe, useRead, useWrite } from '../../api/queries.ts'
import { Button, LinkButton } from '../../components/button.tsx'
import { CopyId } from '../../components/copy.tsx'
import { ConfirmDialog } from '../../components/dialog.tsx'
import { JsonView } from '../../components/json-view.tsx'
import { KeyValueList } from '../../components/key-value.tsx'
import { Menu } from '../../components/menu.tsx'
import { Page } from '../../components/page.tsx'
import { describeError, Loaded, Notice } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { durationText, Time } from '../../components/time.tsx'
import { toast } from '../../components/toast.tsx'
import { SourceForm } from './source-form.tsx'

export function SourcePage() {
  const { sourceId } = useParams({ from: '/app/sources/$sourceId' })
  const query = useRead('getWebhookSource', { params: { source_id: sourceId } })
  return <Loaded query={query}>{(source) => <SourceDetails key={source.id} source={source} />}</Loaded>
}

function SourceDetails({ source }: { source: AppWebhookSourceOut }) {
  const isAdmin = useMe().role !== 'member'
  const navigate = useNavigate()
  const test = useWrite('testWebhookSource')
  const [isDeleting, setIsDeleting] = useState(false)
  const params = { source_id: source.id }
  return (
    <Page
      title={source.name}
      back={{ label: 'Webhook sources', link: linkOptions({ to: '/sources' }) }}
      meta={<CopyId id={source.id} label="source id" />}
      actions={
        <>
          <LinkButton to="/sources/$sourceId/logs" params={{ sourceId: source.id }} icon="audit">
            Logs
          </LinkButton>
          {isAdmin ? (
            <>
              <Button icon="send" isBusy={test.isPending} onClick={() => test.mutate({ params })}>
                {test.isPending ? 'Testing…' : 'Test now'}
              </Button>
              <Menu
                label="More actions"
                groups={[[{ label: 'Delete', icon: 'trash', isDangerous: true, onSelect: () => setIsDeleting(true) }]]}
              />
            </>
          ) : null}
        </>
      }
    >
      {test.error ? <Notice kind="danger">{describeError(test.error)}</Notice> : null}
      {test.data ? <TestResult delivery={test.data} /> : null}
      <LastRequests source={source} />
      {isAdmin ? (
        <SourceForm source={source} />
      ) : (
        <>
          <KeyValueList
            items={[
              ['URL', source.endpoint_url],
              ['Description', source.description || null],
              ['Signed', source.has_signing_secret ? 'Yes' : 'No'],
            ]}
          />
          <JsonView label="example body" value={source.example_request_body} />
        </>
      )}
      {isDeleting ? (
        <ConfirmDialog
          title={`Delete ${source.name}`}
          action="Delete webhook source"
          typed={source.name}
          onClose={() => setIsDeleting(false)}
          onConfirm={async () => {
            await call('deleteWebhookSource', { params })
            // Left before everything is read again: this page would read a source that does not exist.
            await navigate({ to: '/sources', ignoreBlocker: true })
            void refresh()
            toast(`${source.name} is deleted.`)
          }}
        >
          <p>
            Agents can no longer send to this endpoint; workflows that name it find no source. Its log stays readable.
          </p>
        </ConfirmDialog>
      ) : null}
    </Page>
  )
}

function TestResult({ delivery }: { delivery: AppAnswer<'testWebhookSource'> }) {
  const isGood = delivery.outcome === 'accepted'
  const took = delivery.duration_ms === null ? '' : ` after ${durationText(delivery.duration_ms)}`
  return (
    <Notice kind={isGood ? 'good' : 'danger'}>
      <p role="status">
        {isGood
          ? `The endpoint confirmed with status ${delivery.status}${took}.`
          : `The endpoint did not confirm${took}. ${delivery.reason ?? ''}`}{' '}
        <Link
          to="/sources/$sourceId/logs/$deliveryId"
          params={{ sourceId: delivery.source_id, deliveryId: delivery.id }}
        >
          See the request
        </Link>
      </p>
    </Notice>
  )
}

/** What the endpoint last answered, each with its entry in the log. */
function LastRequests({ source }: { source: AppWebhookSourceOut }) {
  const last = (request: AppWebhookSourceOut['last_payload'], none: string) =>
    request ? (
      <span className="row">
        <StatusBadge status={request.outcome} />
        <Link to="/sources/$sourceId/logs/$deliveryId" params={{ sourceId: source.id, deliveryId: request.id }}>
          <span className="visually-hidden">Open the request of </span>
          <Time value={request.created_at} />
        </Link>
        {request.reason ? <span className="muted">{request.reason}</span> : null}
      </span>
    ) : (
      <span className="muted">{none}</span>
    )
  return (
    <KeyValueList
      items={[
        [
          'Verified',
          source.verified_at ? <Time value={source.verified_at} /> : 'Never: it was saved without verification',
        ],
        ['Last verification', last(source.last_verification, 'None in the log')],
        ['Last delivery', last(source.last_payload, 'Nothing was sent yet')],
      ]}
    />
  )
}
