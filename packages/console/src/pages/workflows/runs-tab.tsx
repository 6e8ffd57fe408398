import { tryLink } from '../../components/thing-link.tsx'
import { useRunList } from '../runs/run-list.tsx'
import { LastDayChart } from '../../components/chart.tsx'
import { DataList } from '../../components/data-list.tsx'
import { useWorkflow } from './use-workflow.ts'

export function WorkflowRunsPage() {
  const workflow = useWorkflow()
  return (
    <div className="stack">
      <LastDayChart measure="starts" of={{ by: 'workflow', thing_id: workflow.id }} />
      <DataList
        {...useRunList(workflow.id)}
        empty={{
          icon: 'run',
          title: 'It has never run',
          text: 'Start it here or through the API; its runs appear in this list.',
          action: { label: 'Try it', link: tryLink(workflow.id), variant: 'primary', icon: 'run' },
        }}
      />
    </div>
  )
}
