import type { AppAnswer } from '@workflow-service/contract'
import { INSTRUCTIONS_MAX_LENGTH } from '@workflow-service/contract/limits'
import { mutate, useMe, useRead } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { Changes } from '../../components/changes.tsx'
import { Table } from '../../components/data-list.tsx'
import { openDialog, Dialog } from '../../components/dialog.tsx'
import { TextAreaField } from '../../components/fields.tsx'
import { editFormOptions, Form, useForm } from '../../components/form.tsx'
import { Loaded, Page, Section } from '../../components/page.tsx'
import { FullTime } from '../../components/status-and-time.tsx'
import { CopyBox, LongText } from '../../components/values.tsx'
import { OwnKeys } from './own-keys.tsx'

type Instructions = AppAnswer<'getInstructions'>
type Version = Instructions['versions'][number]

export function AgentsPage() {
  const isAdmin = useMe().role !== 'member'
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
