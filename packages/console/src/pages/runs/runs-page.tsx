import { useList } from '../../api/queries.ts'
import { LinkButton } from '../../components/button.tsx'
import { useFilters } from '../../components/data-list.tsx'
import { Page } from '../../components/page.tsx'
import { EmptyState } from '../../components/states.tsx'
import { RunList } from './run-list.tsx'

export function RunsPage() {
  const filters = useFilters('status', 'since', 'until')
  const list = useList('listRuns', { query: filters.values as never })
  return (
    <Page title="Runs">
      <RunList
        list={list}
        filters={filters}
        empty={
          <EmptyState
            icon="run"
            title="Nothing has run yet"
            action={<LinkButton to="/workflows">Open a workflow</LinkButton>}
          >
            Start a workflow under “Try it”, through the API or on a schedule.
          </EmptyState>
        }
      />
    </Page>
  )
}
