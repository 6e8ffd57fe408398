import { newId, mutate } from '../../api/index.ts'
import { openForm } from '../../components/dialog.tsx'
import { TextField } from '../../components/fields.tsx'
import { beginningOf } from '../../components/text.ts'

/** Asks for a name, and keeps a run or a trial as a case of its workflow. */
export function keepAsCase(workflowId: string, of: { run_id: string } | { trial_id: string }, text: string): void {
  const id = newId()
  openForm({
    title: 'Keep as a case',
    text: 'Its text, and its payloads as the right ones. Later you see whether another model or task sends the same.',
    action: 'Keep',
    isTransient: true,
    savedText: 'Kept. “Cases” of the workflow tries it.',
    values: { name: beginningOf(text.trim().split(/[\r\n]/)[0]!, 80) },
    save: ({ name }) =>
      mutate('saveCase', { params: { workflow_id: workflowId, case_id: id }, body: { name, of, version: null } }),
    fields: ({ field }) => <TextField required {...field('name', 'Name')} />,
  })
}
