import type { AppAnswer } from '@workflow-service/contract'
import { call, mutate, useRead } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { Table } from '../../components/data-list.tsx'
import { askToConfirm, openForm } from '../../components/dialog.tsx'
import { SelectField, TextField } from '../../components/fields.tsx'
import { Loaded, Section } from '../../components/page.tsx'
import { Time } from '../../components/status-and-time.tsx'

type ModelKey = AppAnswer<'listModelKeys'>['data'][number]

/** Keys with which the organization pays its provider itself. */
export function OwnKeys() {
  return (
    <Section
      title="Own keys"
      intro="With a key of your own, your runs use it for this model, in place of the key of the service. It is stored encrypted, and is not shown again. Budgets hold as before."
    >
      <Loaded query={useRead('listModelKeys')}>{({ data }) => <KeyTable keys={data} />}</Loaded>
    </Section>
  )
}

const enterKey = async (model?: string) => {
  const { data } = await call('listModels', {})
  const names = data.flatMap(({ name }) => (name === 'builtin' ? [] : [[name, name]]))
  openForm({
    title: model ? `Replace the key for ${model}` : 'Add a key',
    action: 'Save key',
    values: { model: model ?? names[0]?.[0] ?? '', key: '' },
    save: (body) => mutate('saveModelKey', { body }),
    fields: ({ field }) => (
      <>
        <SelectField options={Object.fromEntries(names)} {...field('model', 'Model')} />
        <TextField type="password" autoComplete="off" {...field('key', 'Key')} />
      </>
    ),
  })
}

const askToRemove = ({ id, model }: ModelKey) =>
  askToConfirm({
    title: `Remove the key for ${model}?`,
    text: 'Runs use the key of the service again.',
    action: 'Remove key',
    onConfirm: () => mutate('deleteModelKey', { params: { model_key_id: id } }),
  })

function KeyTable({ keys }: { keys: readonly ModelKey[] }) {
  return (
    <div className="stack">
      {keys.length > 0 ? (
        <Table
          label="Own keys"
          rows={keys}
          columns={[
            { header: 'Model', cell: ({ model }) => model },
            { header: 'Key', cell: ({ last_characters: end }) => `…${end}`, isShort: true },
            { header: 'Saved', cell: ({ saved_by: by, saved_at: at }) => <KeySaved by={by} at={at} /> },
            { header: 'Actions', cell: (row) => <KeyActions of={row} /> },
          ]}
        />
      ) : null}
      <div className="row">
        <Button label="Add a key" icon="key" onClick={() => enterKey()} />
      </div>
    </div>
  )
}

const KeySaved = ({ by, at }: { by: string; at: string }) => (
  <span className="clamp">
    {by}, <Time value={at} />
  </span>
)

function KeyActions({ of }: { of: ModelKey }) {
  const { model } = of
  return (
    <div className="row">
      <Button label="Replace" aria-label={`Replace the key for ${model}`} onClick={() => enterKey(model)} />
      <Button label="Remove" aria-label={`Remove the key for ${model}`} onClick={() => askToRemove(of)} />
    </div>
  )
}
