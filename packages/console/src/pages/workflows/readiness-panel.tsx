import { Link } from '@tanstack/react-router'
import type { ReadinessOut, WorkflowDetailOut } from '@workflow-service/contract'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { newId, useMe, useRead, mutate } from '../../api/index.ts'
import { type Action, Button } from '../../components/button.tsx'
import { Icon } from '../../components/icons.tsx'
import { Loaded } from '../../components/page.tsx'
import { fileLink, ThingLink } from '../../components/thing-link.tsx'
import { inWords } from '../runs/run-text.ts'
import { useWorkflow } from './use-workflow.ts'

/** The words for each rule that is not met. */
const UNMET: Record<ReadinessOut['checks'][number]['code'], string> = {
  workflow_inactive: 'It is switched off',
  no_active_api_trigger: 'People and programs cannot start it yet',
  no_users_with_access: 'No person has access',
}

/** The warnings with which the built-in agent fails each run. */
const REFUSED: readonly string[] = ['rules_needed', 'rules_invalid']

/** A trigger that people, programs and the schedule fire. */
export const NEW_TRIGGER = {
  name: '',
  trigger_source: { slug: 'api', name: 'API' },
  events: [],
  filters: null,
  input_message: '',
  subagent_sources: [],
  version: null,
}

/** The warnings about more than the names of webhook sources, for which the panel has lines of its own. */
export function beyondNames(warnings: ReadinessOut['warnings']): ReadinessOut['warnings'] {
  return warnings
    .filter(({ code }) => code !== 'no_source_named' && code !== 'unknown_source_named')
    .map((each) => ({
      ...each,
      // The page calls the description "Task".
      message: inWords(each.message.replace(/^The description/, 'The task')),
    }))
}

/** Says that the description is not followed. */
export function RulesNote({ workflowId, rules }: { workflowId: string; rules: WorkflowFile }) {
  return (
    <span>
      <Link {...fileLink(workflowId, { file: rules.id })}>{rules.name}</Link> decides what is sent. The built-in agent
      does not follow the task.
    </span>
  )
}

type WorkflowFile = WorkflowDetailOut['files'][number]

export const findRules = ({ files }: WorkflowDetailOut): WorkflowFile | undefined =>
  files.find(({ name, path }) => name === 'rules.yaml' && path.length === 0)

/** Whether the built-in agent executes the runs of a workflow, or of a new one. */
export function useIsBuiltIn(workflow?: WorkflowDetailOut): boolean {
  const standard = useRead('listModels').data?.data.find(({ is_default: isDefault }) => isDefault)
  return (workflow?.agent.model ?? standard?.name ?? 'builtin') === 'builtin'
}

/** Leads to a new `rules.yaml` for the workflow. */
export const WriteRuleLink = ({ workflowId }: { workflowId: string }) => (
  <Button label="Write a rule" className="small" link={fileLink(workflowId, { file: 'new-rules' })} />
)

/** The panel's words for the error of a start. */
export const unmetText = (code: string): string | undefined => UNMET[code as keyof typeof UNMET]

/** Says whether the workflow can start, and makes it ready. Then the focus goes to what starts it. */
export function ReadinessPanel({ action }: { action?: Action }) {
  const query = useRead('getReadiness', { params: { workflow_id: useWorkflow().id } })
  const fix = useFix()
  const panel = useRef<HTMLElement>(null)
  const couldStart = useRef<boolean>(undefined)
  const canStart = query.data?.can_start
  useEffect(() => {
    const isFixed = couldStart.current === false && canStart
    couldStart.current = canStart
    // The button is gone, and with it the focus.
    if (!isFixed || document.activeElement !== document.body) return
    const next = panel.current?.querySelector('a.primary') ?? document.querySelector('[type=submit]')
    ;(next as HTMLElement | null)?.focus()
  }, [canStart])
  return (
    <section ref={panel} className="card readiness" aria-labelledby="readiness">
      <h2 id="readiness">Ready to start?</h2>
      <Loaded query={query}>
        {(readiness) => (
          <>
            <Checks readiness={readiness} />
            {readiness.can_start && action ? <Button {...action} /> : null}
            {fix ? <Button {...fix} variant="primary" /> : null}
          </>
        )}
      </Loaded>
    </section>
  )
}

function Checks({ readiness }: { readiness: ReadinessOut }) {
  const workflow = useWorkflow()
  const warnings = beyondNames(readiness.warnings)
  const rules = findRules(workflow)
  const isBuiltIn = useIsBuiltIn(workflow)
  const unverified = readiness.sources.filter(({ is_verified: isVerified }) => !isVerified)
  // A workflow that is switched off cannot be started by anyone.
  const isSaid = (code: string) => code === 'no_active_api_trigger' && !workflow.is_active
  const unmet = readiness.checks.filter(({ code, is_met: isMet }) => !isMet && !isSaid(code))
  const yes = warnings.some(({ code }) => REFUSED.includes(code))
    ? 'It starts, but the built-in agent will refuse it.'
    : 'Yes.'
  return (
    <>
      <p role="status">{readiness.can_start ? yes : 'Not yet.'}</p>
      <ul>
        {rules ? (
          <Item>
            <RulesNote workflowId={workflow.id} rules={rules} />
          </Item>
        ) : null}
        {warnings.map(({ code, message, excerpt }) => (
          <Item key={message}>
            {message}.{excerpt === '' ? '' : ` It is: “${excerpt}”`}{' '}
            {code === 'rules_needed' ? <WriteRuleLink workflowId={workflow.id} /> : null}
          </Item>
        ))}
        {unmet.map(({ code }) => (
          <Item key={code} isMissing>
            {UNMET[code]}
          </Item>
        ))}
        {readiness.sources.length === 0 && isBuiltIn ? (
          <Item>
            {rules?.name ?? 'The task'} names no webhook source, so the agent can send nothing. Write the name of one of
            your <Link to="/sources">webhook sources</Link> in it.
          </Item>
        ) : null}
        {unverified.map(({ id, name }) => (
          <Item key={id}>
            It may send to <ThingLink kind="webhook_source" id={id} name={name} />, whose endpoint has never confirmed
          </Item>
        ))}
        {readiness.unknown_names.map((name) => (
          <Item key={name}>
            “{name}” is not a webhook source. Correct the name, or <Link to="/sources/new">add the source</Link>.
          </Item>
        ))}
      </ul>
    </>
  )
}

function Item({ isMissing, children }: { isMissing?: boolean; children: ReactNode }) {
  return (
    <li className={isMissing ? 'bad' : 'warn'}>
      <Icon name={isMissing ? 'close' : 'warning'} />
      <span>
        <span className="visually-hidden">{isMissing ? 'Missing: ' : 'Note: '}</span>
        {children}
      </span>
    </li>
  )
}

/** Makes the workflow ready to start; undefined if it is, or is not known to be. */
export function useFix(): Action | undefined {
  const workflow = useWorkflow()
  const me = useMe()
  const params = { workflow_id: workflow.id }
  const { data } = useRead('getReadiness', { params })
  const paused = workflow.triggers.find(({ trigger_source: kind }) => kind.slug === 'api')
  const [newTriggerId] = useState(newId)
  const { id: triggerId, ...trigger } = paused ?? { id: newTriggerId, ...NEW_TRIGGER }
  const userIds = [...workflow.users.map(({ id }) => id), me.user_id]
  const fixes: Record<keyof typeof UNMET, [label: string, fix: () => Promise<unknown>]> = {
    workflow_inactive: ['switch on', () => mutate('setWorkflowActive', { params, body: { is_active: true } })],
    no_active_api_trigger: [
      'allow starts',
      () =>
        mutate('saveTrigger', { params: { ...params, trigger_id: triggerId }, body: { ...trigger, is_active: true } }),
    ],
    no_users_with_access: [
      'give me access',
      () => mutate('saveWorkflowUsers', { params, body: { user_ids: userIds, version: workflow.users_version } }),
    ],
  }
  const missing = data?.checks.filter(({ is_met: isMet }) => !isMet).map(({ code }) => fixes[code]) ?? []
  async function onClick() {
    for (const [, fix] of missing) await fix()
  }
  const label = new Intl.ListFormat('en').format(missing.map(([each]) => each))
  return missing[0] && { label: label.charAt(0).toUpperCase() + label.slice(1), onClick }
}
