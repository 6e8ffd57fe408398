import { useParams } from '@tanstack/react-router'
import type { WorkflowReadOut } from '@workflow-service/contract'
import { useRead } from '../../api/index.ts'

/** The workflow of the URL. Only below `WorkflowLayout`, which waits for it. */
export function useWorkflow(): WorkflowReadOut {
  const { data } = useRead('getWorkflow', { params: useParams({ from: '/app/workflows/$workflow_id' }) })
  if (!data) throw new Error('useWorkflow is only available below the layout of a workflow.')
  return data
}
