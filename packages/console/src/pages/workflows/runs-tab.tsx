import { LinkButton } from '../../components/button.tsx'
import { EmptyState } from '../../components/states.tsx'
import { RunList } from '../runs/run-list.tsx'
import { useWorkflow } from './use-workflow.ts'

export function WorkflowRunsPage() {
  const workflow = useWorkflow()
  return (
    <RunList
      workflowId={workflow.id}
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
