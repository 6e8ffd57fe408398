import { Link } from '@tanstack/react-router'
import type { ReadinessOut, WorkflowDetailOut } from '@workflow-service/contract'
import type { ReactNode } from 'react'
import { newId } from '../../api/new-id.ts'
import { useMe, useRead, useWrite } from '../../api/queries.ts'
import { Button } from '../../components/button.tsx'
import { Icon } from '../../components/icons.tsx'
import { Loaded } from '../../components/states.tsx'
import { tryIt } from '../../components/toast.tsx'

type Check = ReadinessOut['checks'][number]['code']

const MET: Record<Check, string> = {
  workflow_inactive: 'It is switched on',
  no_active_api_trigger: 'It has an active API trigger',
  no_users_with_access: 'At least one person has access',
}
const NOT_MET: Record<Check, string> = {
  workflow_inactive: 'It is switched off',
  no_active_api_trigger: 'It has no active API trigger',
  no_users_with_access: 'No person has access',
}

/** Says whether the workflow can start, and fixes what is missing. */
export function ReadinessPanel({ workflow, action }: { workflow: WorkflowDetailOut; action?: ReactNode }) {
  const query = useRead('getReadiness', { params: { workflow_id: workflow.id } })
  return (
    <section className="card readiness" aria-labelledby="readiness">
      <h2 id="readiness">Can it start?</h2>
      <Loaded query={query}>
        {(readiness) => (
          <>
            <Checks workflow={workflow} readiness={readiness} />
            {readiness.can_start ? action : null}
          </>
        )}
      </Loaded>
    </section>
  )
}

function Checks({ workflow, readiness }: { workflow: WorkflowDetailOut; readiness: ReadinessOut }) {
  return (
    <>
      <p role="status">{readiness.can_start ? 'Yes.' : 'Not yet. Fix what is marked.'}</p>
      <ul>
        {readiness.checks.map(({ code, is_met: isMet }) => (
          <Item key={code} tone={isMet ? 'good' : 'bad'} fix={isMet ? null : <Fix code={code} workflow={workflow} />}>
            {isMet ? MET[code] : NOT_MET[code]}
          </Item>
        ))}
        {readiness.sources.length === 0 ? (
          <Item tone="warn">
            The description names no webhook source, so the agent can send nothing. Write the name of one of your{' '}
            <Link to="/sources">webhook sources</Link> in it.
          </Item>
        ) : null}
        {readiness.sources.map((source) => (
          <Item key={source.id} tone={source.is_verified ? 'good' : 'warn'}>
            It may send to{' '}
            <Link to="/sources/$sourceId" params={{ sourceId: source.id }}>
              {source.name}
            </Link>
            {source.is_verified ? '' : ', whose endpoint has never confirmed'}
          </Item>
        ))}
        {readiness.unknown_names.map((name) => (
          <Item key={name} tone="warn">
            “{name}” is not a webhook source. Correct the name, or <Link to="/sources/new">add the source</Link>.
          </Item>
        ))}
      </ul>
    </>
  )
}

function Item({ tone, fix, children }: { tone: 'good' | 'bad' | 'warn'; fix?: ReactNode; children: ReactNode }) {
  return (
    <li className={tone}>
      <Icon name={tone === 'good' ? 'check' : tone === 'bad' ? 'close' : 'warning'} />
      <span>
        <span className="visually-hidden">{{ good: 'Met: ', bad: 'Missing: ', warn: 'Note: ' }[tone]}</span>
        {children}
      </span>
      {fix}
    </li>
  )
}

/** The button that makes a rule met. */
function Fix({ code, workflow }: { code: Check; workflow: WorkflowDetailOut }) {
  const me = useMe()
  const params = { workflow_id: workflow.id }
  const activate = useWrite('setWorkflowActive')
  const saveTrigger = useWrite('saveTrigger')
  const saveUsers = useWrite('saveWorkflowUsers')
  const paused = workflow.triggers.find(({ trigger_source: source }) => source.slug === 'api')
  const fixes: Record<Check, readonly [label: string, write: { isPending: boolean }, run: () => Promise<unknown>]> = {
    workflow_inactive: [
      'Switch on',
      activate,
      async () => await activate.mutateAsync({ params, body: { is_active: true } }),
    ],
    no_active_api_trigger: [
      paused ? 'Resume the trigger' : 'Add an API trigger',
      saveTrigger,
      async () => {
        const { id, ...values } = paused ?? {
          id: newId(),
          name: '',
          trigger_source: { slug: 'api', name: 'API' },
          events: [],
          filters: null,
          input_message: '',
          subagent_sources: [],
          version: null,
        }
        await saveTrigger.mutateAsync({ params: { ...params, trigger_id: id }, body: { ...values, is_active: true } })
      },
    ],
    no_users_with_access: [
      'Add me',
      saveUsers,
      async () => {
        const ids = [...workflow.users.map(({ id }) => id), me.user_id]
        await saveUsers.mutateAsync({ params, body: { user_ids: ids, version: workflow.users_version } })
      },
    ],
  }
  const [label, write, run] = fixes[code]
  return (
    <Button className="small" isBusy={write.isPending} onClick={() => void tryIt(async () => void (await run()))}>
      {label}
    </Button>
  )
}
