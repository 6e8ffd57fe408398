import { useQuery } from '@tanstack/react-query'
import type { AppUserOut } from '@workflow-service/contract'
import { AppError, call } from '../../api/call.ts'
import { useWrite } from '../../api/queries.ts'
import { Button } from '../../components/button.tsx'
import { Combobox } from '../../components/combobox.tsx'
import { Section } from '../../components/page.tsx'
import { EmptyState, Notice } from '../../components/states.tsx'
import { toast, tryIt } from '../../components/toast.tsx'
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
  const workflow = useWorkflow()
  const write = useWrite('saveWorkflowUsers')
  const users = useQuery({ queryKey: ['listUsers', {}, 'all'], queryFn: readAllUsers }).data ?? []
  const listed = new Set(workflow.users.map(({ id }) => id))
  const save = (ids: readonly string[], done: string) =>
    void tryIt(async () => {
      try {
        await write.mutateAsync({
          params: { workflow_id: workflow.id },
          body: { user_ids: [...ids], version: workflow.users_version },
        })
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'changed_meanwhile') throw error
        throw new AppError(409, {
          ...error.body,
          message: 'Another person changed the list. Look at it, then try again.',
        })
      }
      toast(done)
    })
  return (
    <Section title="People" intro="The people that this workflow lists.">
      {workflow.scope === 'company_wide' ? (
        <Notice>
          Everyone in the organization has access. This list matters only if you change that on the page “Edit”.
        </Notice>
      ) : null}
      <div className="narrow stack">
        <Combobox
          // An empty field after each choice.
          key={workflow.users_version}
          label="Add a person"
          placeholder="Name or email address"
          value={null}
          onValue={(id) => {
            if (id) save([...listed, id], 'Added.')
          }}
          options={users
            .filter(({ id }) => !listed.has(id))
            .map(({ id, email, first_name: first, last_name: last }) => {
              const name = `${first} ${last}`.trim()
              return { value: id, label: name ? `${name}, ${email}` : email }
            })}
        />
        {workflow.users.length === 0 ? (
          <EmptyState icon="people" title="Nobody is listed" />
        ) : (
          <ul className="lines" aria-label="People">
            {workflow.users.map(({ id, name, email }) => (
              <li key={id} className="row">
                <span>{name || email}</span>
                {name ? <span className="muted">{email}</span> : null}
                <Button
                  variant="ghost"
                  className="at-end"
                  aria-label={`Remove ${name || email}`}
                  onClick={() =>
                    save(
                      [...listed].filter((each) => each !== id),
                      'Removed.',
                    )
                  }
                >
                  Remove
                </Button>
              </li>
            ))}
          </ul>
        )}
      </div>
    </Section>
  )
}
