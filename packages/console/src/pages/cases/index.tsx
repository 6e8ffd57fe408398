import type { AppResponseBody } from '@workflow-service/contract'
import { CASES_MAX } from '@workflow-service/contract/limits'
import { isJsonObject } from '@workflow-service/contract/payload-shape'
import { useState } from 'react'
import { invalid, newId, toList, useRead, mutate } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { DataList } from '../../components/data-list.tsx'
import { askToConfirm, FormDialog } from '../../components/dialog.tsx'
import { TextAreaField, TextField } from '../../components/fields.tsx'
import { linkBeside, useOpened } from '../../components/filters.tsx'
import { editFormOptions } from '../../components/form.tsx'
import { Loaded, Section } from '../../components/page.tsx'
import { parseJson } from '../../components/parse-json.ts'
import { ThingLink, tryLink } from '../../components/thing-link.tsx'
import { useWorkflow } from '../workflows/use-workflow.ts'
import { Evaluations } from './evaluations.tsx'

type Case = AppResponseBody<'getCase'>

const NEW = 'new'

/** Texts with the payloads that are right, and what other models, tasks and versions would send for them. */
export function WorkflowCasesPage() {
  const { id: workflowId } = useWorkflow()
  const [openId, open] = useOpened('case')
  const list = toList(useRead('listCases', { params: { workflow_id: workflowId } }))
  return (
    <div className="stack">
      <Section
        title="Cases"
        intro={`Texts with the payloads that are right for them, at most ${CASES_MAX}. Keep one on the page of a run, or of a text that you have tried.`}
        actions={<Button label="New case" icon="plus" onClick={() => open(NEW)} />}
      >
        <DataList
          label="Cases"
          list={list}
          rowLink={({ id }) => linkBeside('case', id)}
          columns={[
            { header: 'Case', cell: ({ name }) => name },
            { header: 'Text', cell: ({ text }) => text, isSecondary: true },
            { header: 'Payloads', cell: ({ payload_count: count }) => count, isNumber: true },
            {
              header: 'Kept of',
              cell: ({ run_id: runId }) => (runId ? <ThingLink kind="run" id={runId} name="Run" /> : '–'),
            },
            { header: 'By', cell: ({ saved_by: by }) => by, isSecondary: true },
          ]}
          empty={{
            icon: 'check',
            title: 'No case yet',
            text: 'Open a run that was right and choose “Keep as case”, or try a text without sending.',
            action: { label: 'Try it', link: tryLink(workflowId) },
          }}
        />
      </Section>
      {list.rows.length > 0 ? <Evaluations cases={list.rows.length} /> : null}
      {openId === NEW ? <CaseDrawer onClose={open} /> : null}
      {openId && openId !== NEW ? <OpenCase id={openId} onClose={open} /> : null}
    </div>
  )
}

function OpenCase({ id, onClose }: { id: string; onClose: () => void }) {
  const query = useRead('getCase', { params: { workflow_id: useWorkflow().id, case_id: id } })
  return <Loaded query={query}>{(found) => <CaseDrawer key={found.id} found={found} onClose={onClose} />}</Loaded>
}

/** The payloads as a person writes them: each source by its name. */
function payloadsText(expected: Case['expected'] = []): string {
  const list = expected.map(({ source_name: to, payload }) => ({ to, payload }))
  return JSON.stringify(list, null, 2)
}

function CaseDrawer({ found, onClose }: { found?: Case; onClose: () => void }) {
  const [id] = useState(() => found?.id ?? newId())
  const params = { workflow_id: useWorkflow().id, case_id: id }
  const sources = useRead('listWebhookSources').data?.data ?? []
  const toExpected = (text: string): Case['expected'] => {
    const { value, error } = parseJson(text)
    if (!Array.isArray(value) || !value.every((each) => isJsonObject(each) && isJsonObject(each['payload']))) {
      throw invalid('payloads', error ?? 'Enter a list: [{"to": "…", "payload": {…}}]')
    }
    const list = value as { to?: unknown; payload: Record<string, unknown> }[]
    return list.map(({ to, payload }) => {
      const known = found?.expected.find(({ source_name: name }) => name === to)?.source_id
      // One that was deleted may have been made anew.
      const named = sources.find(({ id: of }) => of === known) ?? sources.find(({ name }) => name === to)
      const sourceId = named?.id ?? known
      if (!sourceId) throw invalid('payloads', `There is no webhook source ${JSON.stringify(to)}.`)
      return { source_id: sourceId, source_name: String(to), payload }
    })
  }
  const remove = ({ version }: Case) =>
    askToConfirm({
      title: `Delete ${found?.name}`,
      text: 'Its results are deleted with it. This cannot be undone.',
      action: 'Delete case',
      async onConfirm() {
        await mutate('deleteCase', { params, query: { version } })
        onClose()
      },
      done: 'Deleted.',
    })
  return (
    <FormDialog
      {...editFormOptions(found, (saved) => ({
        name: saved?.name ?? '',
        context: saved?.context ?? '',
        payloads: payloadsText(saved?.expected),
      }))}
      className="drawer wide-drawer"
      title={found?.name ?? 'New case'}
      action={found ? 'Save' : 'Keep'}
      canReset={found !== undefined}
      save={async ({ payloads, ...values }, version) => {
        const body = { ...values, expected: toExpected(payloads), version: version || null }
        const saved = await mutate('saveCase', { params, body })
        if (!found) onClose()
        return saved
      }}
      onClose={onClose}
      tools={found && <Button label="Delete" icon="trash" onClick={() => remove(found)} />}
      fields={({ field }) => (
        <>
          <TextField required {...field('name', 'Name')} />
          <TextAreaField rows={6} {...field('context', 'Text')} />
          <TextAreaField
            isCode
            rows={12}
            hint="All that it has to send, in any order; [] if nothing."
            {...field('payloads', 'Payloads that are right')}
          />
        </>
      )}
    />
  )
}
