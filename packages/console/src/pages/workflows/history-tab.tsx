import type { AppResponseBody } from '@workflow-service/contract'
import { useState } from 'react'
import { mutate, toList, useRead } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { Changes } from '../../components/changes.tsx'
import { DataList } from '../../components/data-list.tsx'
import { askToConfirm, Dialog } from '../../components/dialog.tsx'
import { SelectField } from '../../components/fields.tsx'
import { linkBeside, useOpened } from '../../components/filters.tsx'
import { Loaded, Section } from '../../components/page.tsx'
import { FullTime, Time } from '../../components/status-and-time.tsx'
import { KeyValueList } from '../../components/values.tsx'
import { useWorkflow } from './use-workflow.ts'

type Version = AppResponseBody<'listWorkflowVersions'>['data'][number]

const PARTS = { name: 'Name', description: 'Task', triggers: 'Triggers', files: 'Files' } as const
const partsText = ({ parts }: Version) => parts.map((part) => PARTS[part]).join(', ') || '–'
const authorText = ({ saved_by: by }: Version) =>
  by === 'operator' ? 'Operator (wf)' : (by ?? 'Before the history began')

export function WorkflowHistoryPage() {
  const { id } = useWorkflow()
  const [openId, open] = useOpened('version')
  const params = { workflow_id: id }
  const list = toList(useRead('listWorkflowVersions', { params }))
  const newest = list.rows[0]
  return (
    <Section
      title="History"
      intro="Every save of the task, the triggers or the files is a version. The last 100 are kept, and at most 16 MiB of them; less if the organization has more than 16 workflows."
    >
      <DataList
        label="Versions"
        list={list}
        rowLink={({ id: versionId }) => linkBeside('version', versionId)}
        columns={[
          { header: 'Version', cell: ({ number }) => `${number}${number === newest?.number ? ', now' : ''}` },
          { header: 'Changed', cell: partsText },
          { header: 'By', cell: authorText },
          { header: 'Saved', cell: ({ created_at: at }) => <FullTime value={at} />, isNumber: true, isOptional: true },
        ]}
        empty={{ icon: 'clock', title: 'No version yet', text: 'The next save is the first one.' }}
      />
      {openId && newest ? <VersionDrawer key={openId} id={openId} newest={newest.number} onClose={open} /> : null}
    </Section>
  )
}

const COMPARED = { previous: 'The version before', newest: 'The newest version' } as const

function VersionDrawer({ id, newest, onClose }: { id: string; newest: number; onClose: () => void }) {
  const [compared, setCompared] = useState<keyof typeof COMPARED>('previous')
  const params = { workflow_id: useWorkflow().id, version_id: id }
  const query = useRead('getWorkflowVersion', { params, query: { with: compared } })
  const askToRestore = (number: number) =>
    askToConfirm({
      title: `Restore version ${number}?`,
      text: 'The task, the triggers and the files become those of this version, at once for new runs. What they are now stays in the history.',
      action: 'Restore',
      isHarmless: true,
      async onConfirm() {
        await mutate('restoreWorkflowVersion', { params, body: { newest } })
        onClose()
      },
      done: `Version ${number} is restored.`,
    })
  return (
    <Dialog className="drawer" title="Version" onClose={onClose}>
      <Loaded query={query}>
        {(version) => (
          <>
            <KeyValueList
              items={{
                Version: version.number,
                By: authorText(version),
                Saved: <Time value={version.created_at} isExact />,
                Changed: partsText(version),
              }}
            />
            {version.number === newest ? null : (
              <div className="row">
                <SelectField
                  name="compared"
                  label="Compare with"
                  options={COMPARED}
                  value={compared}
                  onValue={setCompared}
                />
                <Button
                  label={`Restore version ${version.number}`}
                  icon="refresh"
                  onClick={() => askToRestore(version.number)}
                />
              </div>
            )}
            {version.changes.length === 0 ? <p className="muted">They are the same.</p> : null}
            <Changes changes={version.changes} />
          </>
        )}
      </Loaded>
    </Dialog>
  )
}
