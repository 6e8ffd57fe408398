import type { AppAnswer } from '@workflow-service/contract'
import { useState } from 'react'
import { newId } from '../../api/new-id.ts'
import { useList, useMe, write } from '../../api/queries.ts'
import { Button } from '../../components/button.tsx'
import { CopyBox } from '../../components/copy.tsx'
import { curlText } from '../../components/curl.ts'
import { ListPage } from '../../components/data-list.tsx'
import { Dialog, FormDialog } from '../../components/dialog.tsx'
import { Checkbox, SelectField, TextField } from '../../components/fields.tsx'
import { useForm } from '../../components/form.tsx'
import { askToConfirm, openDialog } from '../../components/open-dialog.tsx'
import { Notice } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Time, useNow } from '../../components/time.tsx'

type Key = AppAnswer<'listApiKeys'>['data'][number]

const DAY_MS = 24 * 60 * 60 * 1_000
const LIFETIMES = { 30: '30 days', 90: '90 days', 365: '1 year', '': 'Never' }

export function KeysPage() {
  return (
    <ListPage
      title="API keys"
      intro="Programs start workflows with a key through the public API."
      create={{ label: 'New key', onSelect: () => openDialog((close) => <NewKey onClose={close} />) }}
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
        { header: 'Scopes', cell: (key) => key.scopes.join(', ') },
        { header: 'Created by', cell: (key) => key.created_by?.name ?? 'Operator', isSecondary: true },
        { header: 'Last used', cell: (key) => <Time value={key.last_used_at} none="Never" /> },
        { header: 'Expires', cell: (key) => <Expiry apiKey={key} /> },
        {
          header: 'Action',
          isNumber: true,
          cell: (key) => (key.revoked_at ? null : <Button onClick={() => revoke(key)}>Revoke</Button>),
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
    onConfirm: () => write('revokeApiKey', { params: { api_key_id: id } }),
    done: `${name} is revoked.`,
  })
}

function Expiry({ apiKey: { revoked_at: revokedAt, expires_at: expiresAt } }: { apiKey: Key }) {
  const isExpired = useNow() > Date.parse(expiresAt ?? '')
  if (!revokedAt && !isExpired) return <Time value={expiresAt} none="Never" />
  return <StatusBadge status="off">{revokedAt ? 'Revoked' : 'Expired'}</StatusBadge>
}

function NewKey({ onClose }: { onClose: () => void }) {
  // A repeated request with the same id makes no second key.
  const [id] = useState(newId)
  const form = useForm({
    values: { name: '', read: true, start: true, days: '90' },
    isTransient: true,
    save: async ({ name, read, start, days }) => {
      const scopes = [...(read ? (['read'] as const) : []), ...(start ? (['start'] as const) : [])]
      const expiresAt = days ? new Date(Date.now() + Number(days) * DAY_MS).toISOString() : null
      const created = await write('createApiKey', { body: { id, name, scopes, expires_at: expiresAt } })
      onClose()
      openDialog((close) => <ShownKey created={created} onClose={close} />)
    },
  })
  return (
    <FormDialog title="New API key" form={form} action="Create key" onClose={onClose}>
      <TextField hint="Names the program that uses it, such as “CRM”." {...form.field('name', 'Name')} />
      <fieldset className="radios">
        <legend>Scopes</legend>
        <Checkbox {...form.field('read', 'Read: list workflows')} />
        <Checkbox {...form.field('start', 'Start: start workflows, open and close sessions')} />
      </fieldset>
      <SelectField options={LIFETIMES} {...form.field('days', 'Expires after')} />
    </FormDialog>
  )
}

function ShownKey({ created, onClose }: { created: AppAnswer<'createApiKey'>; onClose: () => void }) {
  const url = `${useMe().api_url ?? 'https://your-api'}/v1/workflows`
  const done = <Button onClick={onClose}>I stored it</Button>
  return (
    <Dialog title={`${created.name} is ready`} className="wide" onClose={onClose} actions={done}>
      {created.key ? (
        <>
          <Notice kind="warning">The key is shown only now. Store it where your program reads its secrets.</Notice>
          <CopyBox label="API key" text={created.key} />
          <p>Try it: this lists the workflows of the organization.</p>
          <CopyBox label="curl line" text={curlText(url, [`"Authorization: Bearer ${created.key}"`])} />
        </>
      ) : (
        <Notice kind="warning">
          The key was already made by an earlier request and cannot be shown again. Revoke it and make another.
        </Notice>
      )}
    </Dialog>
  )
}
