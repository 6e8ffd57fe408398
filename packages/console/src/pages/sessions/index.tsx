import { Page } from '../../components/page.tsx'

export function SessionsPage() {
  return <Page title="Sessions">{null}</Page>
}

export function SessionPage() {
  return <Page title="Session">{null}</Page>
}
