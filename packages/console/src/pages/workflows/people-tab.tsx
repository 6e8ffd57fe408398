import { mutate } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { Combobox } from '../../components/combobox.tsx'
import { useUserOptions } from '../../components/pickers.tsx'
import { EmptyState, Notice, Section } from '../../components/page.tsx'
import { tryIt } from '../../components/toast.ts'
import { useWorkflow } from './use-workflow.ts'

export function WorkflowPeoplePage() {
  const { id: workflowId, users: listed, users_version: version, scope } = useWorkflow()
  const { options, ...search } = useUserOptions()
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
        {...search}
        options={options.filter(({ value }) => !ids.includes(value))}
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
