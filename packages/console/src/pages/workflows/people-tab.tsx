import { useQuery } from '@tanstack/react-query'
import type { AppUserOut } from '@workflow-service/contract'
import { call, mutate } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { Combobox } from '../../components/combobox.tsx'
import { EmptyState, Notice, Section } from '../../components/page.tsx'
import { tryIt } from '../../components/toast.ts'
import { useWorkflow } from './use-workflow.ts'

/** Every user of the organization, page by page. */
async function readAllUsers(): Promise<AppUserOut[]> {
  const users: AppUserOut[] = []
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await call('listUsers', { query: { limit: 100, ...(cursor ? { cursor } : {}) } })
    users.push(...page.data)
    cursor = page.pagination.next_cursor
  }
  return users
}

export function WorkflowPeoplePage() {
  const { id: workflowId, users: listed, users_version: version, scope } = useWorkflow()
  const { data: users = [], error } = useQuery({ queryKey: ['listUsers', {}, 'all'], queryFn: readAllUsers })
  const ids = listed.map(({ id }) => id)
  const save = (userIds: string[]) =>
    mutate('saveWorkflowUsers', { params: { workflow_id: workflowId }, body: { user_ids: userIds, version } })
  return (
    <Section title="People" intro="The people that this workflow lists." isNarrow>
      {scope === 'company_wide' ? (
        <Notice>
          Everyone in the organization has access. This list matters only if you change that on the page “Edit”.
        </Notice>
      ) : null}
      <Combobox
        // An empty field after each choice.
        key={version}
        label="Add a person"
        placeholder="Name or email address"
        value={null}
        onValue={(id) => tryIt(() => save([...ids, id]), 'Added.')}
        problem={error}
        options={users
          .filter(({ id }) => !ids.includes(id))
          .map(({ id, email, first_name: first, last_name: last }) => ({
            value: id,
            label: [`${first} ${last}`.trim(), email].filter(Boolean).join(', '),
          }))}
      />
      {listed.length === 0 ? <EmptyState icon="people" title="No one is listed" /> : null}
      <ul className="lines" aria-label="People">
        {listed.map(({ id, name, email }) => (
          <li key={id} className="row">
            <span>{name || email}</span>
            {name ? <span className="muted">{email}</span> : null}
            <Button
              label="Remove"
              variant="ghost"
              className="at-end"
              aria-label={`Remove ${name || email}`}
              onClick={() => save(ids.filter((each) => each !== id))}
              done="Removed."
            />
          </li>
        ))}
      </ul>
    </Section>
  )
}
