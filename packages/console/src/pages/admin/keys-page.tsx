import type { AppResponseBody } from '@workflow-service/contract'
import { newId, useList, useMe, mutate } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { curlText } from '../../components/curl.ts'
import { ListPage } from '../../components/data-list.tsx'
import { askToConfirm, openForm, showOnce } from '../../components/dialog.tsx'
import { CheckboxGroup, SelectField, TextField } from '../../components/fields.tsx'
import { Notice } from '../../components/page.tsx'
import { DAY_MS, StatusBadge, Time, useNow } from '../../components/status-and-time.tsx'
import { CopyBox } from '../../components/values.tsx'

type Key = AppResponseBody<'listApiKeys'>['data'][number]

const LIFETIMES = { 30: '30 days', 90: '90 days', 365: '1 year', '': 'Never' }

export function KeysPage() {
  const { api_url: apiUrl } = useMe()
  return (
    <ListPage
      title="API keys"
      intro="Programs start workflows with a key through the public API."
      create={{ label: 'New key', onClick: () => openNewKey(apiUrl) }}
      label="API keys"
      list={useList('listApiKeys')}
      empty={{
        icon: 'key',
        title: 'No API keys yet',
        text: 'A key lets your programs list and start the workflows of this organization.',
      }}
      columns={[
        { header: 'Name', cell: (key) => key.name },
        { header: 'Key', cell: (key) => <code>{key.prefix}…</code> },
        { header: 'Scopes', cell: (key) => key.scopes.join(', '), isShort: true },
        {
          header: 'Created by',
          cell: (key) => key.created_by?.name ?? 'Operator or removed person',
          isSecondary: true,
        },
        { header: 'Last used', cell: (key) => <Time value={key.last_used_at} none="Never" /> },
        { header: 'Expires', cell: (key) => <Expiry apiKey={key} /> },
        {
          header: 'Action',
          isNumber: true,
          cell: (key) =>
            key.revoked_at ? null : (
              <Button label="Revoke" aria-label={`Revoke ${key.name}`} onClick={() => revoke(key)} />
            ),
        },
      ]}
    />
  )
}

function revoke({ id, name }: Key) {
  askToConfirm({
    title: `Revoke ${name}?`,
    text: 'Requests with it stop working within 5 seconds. This cannot be undone; runs that have begun continue.',
    action: 'Revoke key',
    onConfirm: () => mutate('revokeApiKey', { params: { api_key_id: id } }),
    done: `${name} is revoked.`,
  })
}

function Expiry({ apiKey: { revoked_at: revokedAt, expires_at: expiresAt } }: { apiKey: Key }) {
  const isExpired = useNow() > Date.parse(expiresAt ?? '')
  if (!revokedAt && !isExpired) return <Time value={expiresAt} none="Never" />
  return <StatusBadge status="closed">{revokedAt ? 'Revoked' : 'Expired'}</StatusBadge>
}

const SCOPES = { read: 'Read: the organization and its workflows', start: 'Start: start workflows' }

function openNewKey(apiUrl: string | null) {
  // A repeated request with the same id and expiry makes no second key.
  const [id, openedAt] = [newId(), Date.now()]
  openForm({
    title: 'New API key',
    action: 'Create key',
    isTransient: true,
    values: { name: '', scopes: ['read', 'start'] as ('read' | 'start')[], days: '90' },
    async save({ name, scopes, days }) {
      const expiresAt = days ? new Date(openedAt + Number(days) * DAY_MS).toISOString() : null
      return await mutate('createApiKey', { body: { id, name, scopes, expires_at: expiresAt } })
    },
    onSaved: (created) => showKey(created, apiUrl),
    fields: ({ field }) => (
      <>
        <TextField hint="Names the program that uses it, such as “CRM”." {...field('name', 'Name')} />
        <CheckboxGroup options={SCOPES} {...field('scopes', 'Scopes')} />
        <SelectField options={LIFETIMES} {...field('days', 'Expires after')} />
      </>
    ),
  })
}

function showKey({ name, key }: AppResponseBody<'createApiKey'>, apiUrl: string | null) {
  const url = `${apiUrl ?? 'https://your-api'}/v1/workflows`
  showOnce({
    title: `${name} is ready`,
    className: 'wide',
    done: 'I stored it',
    children: key ? (
      <>
        <Notice kind="warning">The key is shown only now. Store it where your program reads its secrets.</Notice>
        <CopyBox label="API key" text={key} />
        <p>Try it: this lists the workflows of the organization.</p>
        <CopyBox label="curl line" text={curlText(url, [`"Authorization: Bearer ${key}"`])} />
      </>
    ) : (
      <Notice kind="warning">
        The key was already made by an earlier request and cannot be shown again. Revoke it and make another.
      </Notice>
    ),
  })
}
