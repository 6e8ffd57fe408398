import type { AppResponseBody } from '@workflow-service/contract'
import { useState } from 'react'
import { newId, toList, useRead, mutate } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { Changes } from '../../components/changes.tsx'
import { DataList } from '../../components/data-list.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { SelectField, TextAreaField } from '../../components/fields.tsx'
import { linkBeside, useOpened } from '../../components/filters.tsx'
import { Form, useForm } from '../../components/form.tsx'
import { Loaded, Notice, Section } from '../../components/page.tsx'
import { durationText, Time } from '../../components/status-and-time.tsx'
import { Table } from '../../components/table.tsx'
import { CopyBox, KeyValueList, moneyText } from '../../components/values.tsx'
import { errorText } from '../runs/run-text.ts'
import { useWorkflow } from '../workflows/use-workflow.ts'

type Evaluation = AppResponseBody<'listEvaluations'>['data'][number]
type Result = AppResponseBody<'getEvaluation'>['results'][number]

/** Starts evaluations of the cases, and shows the last ones. */
export function Evaluations({ cases }: { cases: number }) {
  const { id: workflowId } = useWorkflow()
  const [openId, open] = useOpened('evaluation')
  const currency = useRead('listModels').data?.data.find((each) => each.currency)?.currency ?? null
  const list = toList(useRead('listEvaluations', { params: { workflow_id: workflowId } }))
  return (
    <Section
      title="Evaluation"
      intro="What the agent would send for each case with another model, version, task or rules. Nothing is sent. Models cost as in runs, within the same budgets."
    >
      <StartForm cases={cases} onStarted={open} />
      <DataList
        label="Evaluations"
        list={list}
        rowLink={({ id }) => linkBeside('evaluation', id)}
        columns={[
          { header: 'Tried with', cell: triedWith },
          { header: 'Same', cell: sameText, isNumber: true },
          {
            header: 'Cost',
            cell: ({ cost_micros: cost }) => cost !== null && moneyText(cost, currency),
            isNumber: true,
          },
          { header: 'Time', cell: ({ duration_ms: ms }) => durationText(ms), isNumber: true },
          { header: 'Started', cell: ({ created_at: at }) => <Time value={at} />, isNumber: true },
        ]}
        empty={{
          icon: 'eye',
          title: 'No evaluation yet',
          text: 'The first one shows whether the cases are right now.',
        }}
      />
      {openId ? <EvaluationDrawer id={openId} currency={currency} onClose={open} /> : null}
    </Section>
  )
}

const sameText = ({ same, done, total, finished_at: at }: Evaluation) =>
  at ? `${same} of ${total}` : `${same} of ${done}, ${total - done} to do`

function triedWith({ model, version_number: version, description, rules }: Evaluation): string {
  const drafts = [description !== null && 'another task', rules !== null && 'other rules'].filter(Boolean)
  return [model ?? 'The default model', `version ${version}`, ...drafts].join(', ')
}

function StartForm({ cases, onStarted }: { cases: number; onStarted: (id: string) => void }) {
  const workflow = useWorkflow()
  const params = { workflow_id: workflow.id }
  const models = useRead('listModels').data?.data ?? []
  const versions = useRead('listWorkflowVersions', { params }).data?.data ?? []
  // Repeated with the same id, because its response was lost, it tries nothing twice.
  const [id, setId] = useState(newId)
  const form = useForm({
    values: { model: '', version_id: '', description: '', rules: '' },
    isTransient: true,
    asksToLeave: true,
    async save({ model, version_id: version, description, rules }) {
      const drafts = { description: description.trim() ? description : null, rules: rules.trim() ? rules : null }
      const body = { id, model: model || null, version_id: version || null, ...drafts }
      await mutate('startEvaluation', { params, body })
      setId(newId())
      onStarted(id)
    },
  })
  return (
    <Form form={form} action={cases === 1 ? 'Try the case' : `Try the ${cases} cases`}>
      <div className="columns">
        <SelectField
          options={Object.fromEntries(models.map(({ name }) => [name, name]))}
          none={`That of the workflow (${workflow.agent.model ?? 'the default'})`}
          {...form.field('model', 'Model')}
        />
        <SelectField
          options={Object.fromEntries(versions.slice(1).map((each) => [each.id, `Version ${each.number}`]))}
          none="As it is now"
          {...form.field('version_id', 'Version')}
        />
      </div>
      <details>
        <summary>Another task or other rules, which are not saved</summary>
        <div className="stack">
          <TextAreaField rows={4} hint="Empty: that of the version." {...form.field('description', 'Task')} />
          <TextAreaField isCode rows={6} hint="Empty: those of the version." {...form.field('rules', 'rules.yaml')} />
        </div>
      </details>
    </Form>
  )
}

function EvaluationDrawer(props: { id: string; currency: string | null; onClose: () => void }) {
  const { id, currency, onClose } = props
  const params = { workflow_id: useWorkflow().id, evaluation_id: id }
  return (
    <Dialog className="drawer wide-drawer" title="Evaluation" onClose={onClose}>
      <Loaded query={useRead('getEvaluation', { params })}>
        {(evaluation) => (
          <>
            <div role="status">
              <Notice kind={noticeKind(evaluation)}>
                {sameText(evaluation)} cases have exactly the right payloads.
              </Notice>
            </div>
            {evaluation.finished_at ? null : (
              <Button label="Stop" icon="close" onClick={() => mutate('stopEvaluation', { params })} />
            )}
            <KeyValueList
              items={{
                'Tried with': triedWith(evaluation),
                'Started by': evaluation.started_by,
                Started: <Time value={evaluation.created_at} isExact />,
                Cost: evaluation.cost_micros !== null && moneyText(evaluation.cost_micros, currency),
                Time: durationText(evaluation.duration_ms),
              }}
            />
            {[evaluation.description, evaluation.rules].map((text, index) =>
              text === null ? null : (
                <CopyBox key={index} label={index === 0 ? 'Other task' : 'Other rules'} text={text} />
              ),
            )}
            <Table
              label="Results"
              rows={evaluation.results}
              columns={[
                { header: 'Case', cell: ({ case_name: name }) => name },
                { header: 'Result', cell: resultText },
                { header: 'Cost', cell: ({ cost_micros: c }) => c !== null && moneyText(c, currency), isNumber: true },
                { header: 'Time', cell: ({ duration_ms: ms }) => ms !== null && durationText(ms), isNumber: true },
              ]}
            />
            {evaluation.results.map((result) => (
              <Differences key={result.id} result={result} />
            ))}
          </>
        )}
      </Loaded>
    </Dialog>
  )
}

function noticeKind({ finished_at: at, same, total }: Evaluation) {
  if (!at) return 'info'
  return same === total ? 'good' : 'warning'
}

function resultText({ finished_at: at, error, differences }: Result): string {
  if (!at) return 'To do'
  if (error) return error.startsWith('stopped: ') ? 'Stopped' : 'Would fail'
  if (differences.length === 0) return 'Same'
  return differences.length === 1 ? '1 difference' : `${differences.length} differences`
}

/** How a case differs, and the button that makes what it would send the right payloads. */
function Differences({ result }: { result: Result }) {
  const { id: workflowId } = useWorkflow()
  const { id, case_id: caseId, case_name: name, case_version: version, error, differences } = result
  if (!result.finished_at || (!error && differences.length === 0)) return null
  const params = { workflow_id: workflowId, case_id: caseId }
  return (
    <section className="stack" aria-label={name}>
      <h3 className="row">
        {name}
        {error || result.payload_count === null ? null : (
          <Button
            label="This is right"
            className="small at-end"
            onClick={() => mutate('saveCase', { params, body: { name, of: { result_id: id }, version } })}
          />
        )}
      </h3>
      {error ? <p>{errorText(error)}</p> : null}
      <Changes
        names={['Right', 'Would be sent']}
        changes={differences.map(({ source_name: source, field, expected, actual }) => ({
          field: field ? `${source}: ${field}` : source,
          old: expected,
          new: actual,
        }))}
      />
    </section>
  )
}
