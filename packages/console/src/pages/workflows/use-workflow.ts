import { useParams } from '@tanstack/react-router'
import type { WorkflowReadOut } from '@workflow-service/contract'
import { useRead } from '../../api/queries.ts'

/** The workflow of the URL. Only below `WorkflowLayout`, which waits for it. */
export function useWorkflow(): WorkflowReadOut {
  const { workflowId } = useParams({ from: '/app/workflows/$workflowId' })
  const { data } = useRead('getWorkflow', { params: { workflow_id: workflowId } })
  if (!data) throw new Error('useWorkflow is only available below the layout of a workflow.')
  return data
}
