import { Page } from '../../components/page.tsx'

export function RunsPage() {
  return <Page title="Runs">{null}</Page>
}

export function RunPage() {
  return <Page title="Run">{null}</Page>
}
