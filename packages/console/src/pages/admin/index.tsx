import { Page } from '../../components/page.tsx'

export function KeysPage() {
  return <Page title="API keys">{null}</Page>
}

export function PeoplePage() {
  return <Page title="People">{null}</Page>
}

export function OrganizationPage() {
  return <Page title="Organization">{null}</Page>
}

export function AuditPage() {
  return <Page title="Audit log">{null}</Page>
}
