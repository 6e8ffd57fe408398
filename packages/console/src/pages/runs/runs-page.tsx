import { ListPage } from '../../components/data-list.tsx'
import { useRunList } from './run-list.tsx'

export function RunsPage() {
  return (
    <ListPage
      title="Runs"
      {...useRunList()}
      empty={{
        icon: 'run',
        title: 'Nothing has run yet',
        text: 'Start a workflow under “Try it”, through the API or on a schedule.',
        action: { label: 'Open a workflow', link: { to: '/workflows' } },
      }}
    />
  )
}
