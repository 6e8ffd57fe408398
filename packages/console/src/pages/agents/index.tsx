import type { AppResponseBody } from '@workflow-service/contract'
import { INSTRUCTIONS_MAX_LENGTH } from '@workflow-service/contract/limits'
import { call, invalid, mutate, useIsAdmin, useRead } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { Changes } from '../../components/changes.tsx'
import { askToConfirm, openDialog, openForm, Dialog } from '../../components/dialog.tsx'
import { SelectField, TextAreaField, TextField } from '../../components/fields.tsx'
import { editFormOptions, Form, useForm } from '../../components/form.tsx'
import { Loaded, Page, Section } from '../../components/page.tsx'
import { FullTime, Time } from '../../components/status-and-time.tsx'
import { Table } from '../../components/table.tsx'
import { CopyBox, LongText } from '../../components/values.tsx'

type Instructions = AppResponseBody<'getInstructions'>
type Version = Instructions['versions'][number]
type ModelKey = AppResponseBody<'listModelKeys'>['data'][number]

export function AgentsPage() {
  const isAdmin = useIsAdmin()
  return (
    <Page title="Agents" intro="What every agent with a model follows, in all workflows of the organization.">
      <Loaded query={useRead('getInstructions')}>
        {(instructions) => (
          <>
            <Section
              title="Instructions of the organization"
              intro="Such as tone, language, or what never to send. Runs that begin after a save follow the new version."
            >
              {isAdmin ? <InstructionsForm instructions={instructions} /> : <LongText text={instructions.text} />}
              {instructions.versions.length > 0 ? <VersionTable instructions={instructions} isAdmin={isAdmin} /> : null}
            </Section>
            <Section
              title="System text"
              intro="As a model gets it, here for a workflow named NAME. The rules at its end are those of the service: nothing that is written here or in a task comes after them. The page of a run has what that run was asked."
            >
              <CopyBox label="System text" text={instructions.system_text} />
            </Section>
            {isAdmin ? <OwnKeys /> : null}
          </>
        )}
      </Loaded>
    </Page>
  )
}

function InstructionsForm({ instructions }: { instructions: Instructions }) {
  const form = useForm({
    ...editFormOptions(instructions, ({ text }) => ({ text })),
    save: (values, version) => mutate('saveInstructions', { body: { ...values, version } }),
  })
  return (
    <Form form={form} action="Save instructions" canReset>
      <TextAreaField
        rows={8}
        hint={`At most ${INSTRUCTIONS_MAX_LENGTH.toLocaleString('en')} characters. Empty: none.`}
        {...form.field('text', 'Instructions')}
      />
    </Form>
  )
}

function VersionTable({ instructions, isAdmin }: { instructions: Instructions; isAdmin: boolean }) {
  const { versions, version } = instructions
  const open = (row: Version) =>
    openDialog((close) => {
      const restore = async () => {
        await mutate('saveInstructions', { body: { text: row.text, version } })
        close()
      }
      const before = versions.find(({ number }) => number === row.number - 1)
      const changes = [{ field: 'Compared with the version before', old: before?.text, new: row.text }]
      const isNewest = String(row.number) === version
      if (!isNewest) changes.push({ field: 'Compared with the newest version', old: row.text, new: instructions.text })
      return (
        <Dialog
          title={`Version ${row.number}`}
          onClose={close}
          actions={isAdmin && !isNewest ? <Button label={`Restore version ${row.number}`} onClick={restore} /> : null}
        >
          <Changes changes={changes} />
        </Dialog>
      )
    })
  return (
    <Table
      label="Versions"
      isLabelShown
      rows={versions.map((row) => ({ ...row, id: String(row.number) }))}
      columns={[
        { header: 'Version', cell: ({ number }) => `${number}${String(number) === version ? ', now' : ''}` },
        { header: 'By', cell: ({ saved_by: by }) => (by === 'operator' ? 'Operator (wf)' : by) },
        { header: 'Saved', cell: ({ saved_at: at }) => <FullTime value={at} /> },
        {
          header: 'Actions',
          cell: (row) => (
            <Button label="Compare" aria-label={`Compare version ${row.number}`} onClick={() => open(row)} />
          ),
        },
      ]}
    />
  )
}

/** Keys with which the organization pays its provider itself. */
function OwnKeys() {
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
  if (!model && names.length === 0)
    throw invalid('model', 'There is no model yet. Your operator sets up models, then add a key.')
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
    done: `The key for ${model} is removed.`,
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
            {
              header: 'Saved',
              cell: ({ saved_by: by, saved_at: at }) => (
                <span className="clamp">
                  {by}, <Time value={at} />
                </span>
              ),
            },
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

function KeyActions({ of }: { of: ModelKey }) {
  const { model } = of
  return (
    <div className="row">
      <Button label="Replace" aria-label={`Replace the key for ${model}`} onClick={() => enterKey(model)} />
      <Button label="Remove" aria-label={`Remove the key for ${model}`} onClick={() => askToRemove(of)} />
    </div>
  )
}
