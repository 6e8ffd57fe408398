import { useList } from '../../api/queries.ts'
import { LinkButton } from '../../components/button.tsx'
import { useFilters } from '../../components/data-list.tsx'
import { EmptyState } from '../../components/states.tsx'
import { RunList } from '../runs/run-list.tsx'
import { useWorkflow } from './use-workflow.ts'

export function WorkflowRunsPage() {
  const workflow = useWorkflow()
  const filters = useFilters('status', 'since', 'until')
  const list = useList('listRuns', { query: { ...filters.values, workflow_id: workflow.id } as never })
  return (
    <RunList
      list={list}
      filters={filters}
      hasWorkflow={false}
      empty={
        <EmptyState
          icon="run"
          title="It has never run"
          action={
            <LinkButton
              to="/workflows/$workflowId/try"
              params={{ workflowId: workflow.id }}
              variant="primary"
              icon="run"
            >
              Try it
            </LinkButton>
          }
        >
          Start it here or through the API; its runs appear in this list.
        </EmptyState>
      }
    />
  )
}
