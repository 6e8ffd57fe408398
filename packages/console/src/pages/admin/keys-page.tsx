import type { AppAnswer } from '@workflow-service/contract'
import { useState } from 'react'
import { useList, useMe, useWrite } from '../../api/queries.ts'
import { Button } from '../../components/button.tsx'
import { CopyBox } from '../../components/copy.tsx'
import { DataList } from '../../components/data-list.tsx'
import { ConfirmDialog, Dialog } from '../../components/dialog.tsx'
import { Checkbox, SelectField, TextField } from '../../components/fields.tsx'
import { Form, useForm } from '../../components/form.tsx'
import { Page } from '../../components/page.tsx'
import { EmptyState, Notice } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Time, useNow } from '../../components/time.tsx'
import { toast } from '../../components/toast.tsx'

type Key = AppAnswer<'listApiKeys'>['data'][number]

const DAY_MS = 24 * 60 * 60 * 1_000
const LIFETIMES = [
  ['30', '30 days'],
  ['90', '90 days'],
  ['365', '1 year'],
  ['', 'Never'],
] as const

export function KeysPage() {
  const list = useList('listApiKeys')
  const [isCreating, setIsCreating] = useState(false)
  const [created, setCreated] = useState<AppAnswer<'createApiKey'>>()
  const [revoked, setRevoked] = useState<Key>()
  const revoke = useWrite('revokeApiKey')
  const newButton = (
    <Button variant="primary" icon="plus" onClick={() => setIsCreating(true)}>
      New key
    </Button>
  )
  return (
    <Page
      title="API keys"
      intro="Programs start workflows with a key through the public API."
      actions={list.rows.length > 0 ? newButton : null}
    >
      <DataList
        label="API keys"
        list={list}
        empty={
          <EmptyState icon="key" title="No API keys yet" action={newButton}>
            A key lets your programs list and start the workflows of this organization.
          </EmptyState>
        }
        columns={[
          { header: 'Name', cell: (key) => key.name },
          { header: 'Key', cell: (key) => <code>{key.prefix}…</code> },
          { header: 'May', cell: (key) => key.scopes.join(', ') },
          { header: 'Made by', cell: (key) => key.created_by?.name ?? 'Operator', isSecondary: true },
          { header: 'Last used', cell: (key) => (key.last_used_at ? <Time value={key.last_used_at} /> : 'Never') },
          { header: 'Expires', cell: (key) => <Expiry apiKey={key} /> },
          {
            header: 'Action',
            isNumber: true,
            cell: (key) => (key.revoked_at ? null : <Button onClick={() => setRevoked(key)}>Revoke</Button>),
          },
        ]}
      />
      {isCreating ? <NewKey onClose={() => setIsCreating(false)} onCreated={setCreated} /> : null}
      {created ? <ShownKey created={created} onClose={() => setCreated(undefined)} /> : null}
      {revoked ? (
        <ConfirmDialog
          title={`Revoke ${revoked.name}?`}
          action="Revoke key"
          onClose={() => setRevoked(undefined)}
          onConfirm={async () => {
            await revoke.mutateAsync({ params: { api_key_id: revoked.id } })
            toast(`${revoked.name} is revoked.`)
          }}
        >
          <p>Requests with it stop working within 5 seconds. This cannot be undone; runs that have begun continue.</p>
        </ConfirmDialog>
      ) : null}
    </Page>
  )
}

function Expiry({ apiKey }: { apiKey: Key }) {
  const now = useNow()
  if (apiKey.revoked_at) return <StatusBadge status="off">Revoked</StatusBadge>
  if (!apiKey.expires_at) return 'Never'
  if (Date.parse(apiKey.expires_at) < now) return <StatusBadge status="off">Expired</StatusBadge>
  return <Time value={apiKey.expires_at} />
}

function NewKey(props: { onClose: () => void; onCreated: (key: AppAnswer<'createApiKey'>) => void }) {
  const create = useWrite('createApiKey')
  // A repeated request with the same id makes no second key.
  const [id] = useState(() => crypto.randomUUID())
  const form = useForm({
    values: { name: '', read: true, start: true, days: '90' },
    savedText: null,
    warnsBeforeLeaving: false,
    save: async ({ name, read, start, days }) => {
      const created = await create.mutateAsync({
        body: {
          id,
          name,
          scopes: [...(read ? (['read'] as const) : []), ...(start ? (['start'] as const) : [])],
          expires_at: days ? new Date(Date.now() + Number(days) * DAY_MS).toISOString() : null,
        },
      })
      props.onClose()
      props.onCreated(created)
    },
  })
  return (
    <Dialog title="New API key" onClose={props.onClose}>
      <Form form={form} action="Create key" extra={<Button onClick={props.onClose}>Cancel</Button>}>
        <TextField label="Name" hint="Names the program that uses it, such as “CRM”." {...form.field('name')} />
        <fieldset className="radios">
          <legend>May</legend>
          <Checkbox label="Read: list workflows" {...form.field('read')} />
          <Checkbox label="Start: start workflows, open and close sessions" {...form.field('start')} />
        </fieldset>
        <SelectField label="Expires after" options={LIFETIMES} {...form.field('days')} />
      </Form>
    </Dialog>
  )
}

function ShownKey({ created, onClose }: { created: AppAnswer<'createApiKey'>; onClose: () => void }) {
  const { api_url: apiUrl } = useMe()
  return (
    <Dialog
      title={`${created.name} is ready`}
      className="wide"
      onClose={onClose}
      actions={<Button onClick={onClose}>I stored it</Button>}
    >
      {created.key ? (
        <>
          <Notice kind="warning">The key is shown only now. Store it where your program reads its secrets.</Notice>
          <CopyBox label="API key" text={created.key} />
          <p>Try it: this lists the workflows of the organization.</p>
          <CopyBox
            label="curl line"
            text={`curl ${apiUrl ?? 'https://your-api'}/v1/workflows \\\n  -H "Authorization: Bearer ${created.key}"`}
          />
        </>
      ) : (
        <Notice kind="warning">
          The key was already made by an earlier request and cannot be shown again. Revoke it and make another.
        </Notice>
      )}
    </Dialog>
  )
}
