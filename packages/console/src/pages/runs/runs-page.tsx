import { LinkButton } from '../../components/button.tsx'
import { Page } from '../../components/page.tsx'
import { EmptyState } from '../../components/states.tsx'
import { RunList } from './run-list.tsx'

export function RunsPage() {
  return (
    <Page title="Runs">
      <RunList
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
