import { Page } from '../../components/page.tsx'

export function SourcesPage() {
  return <Page title="Webhook sources">{null}</Page>
}

export function NewSourcePage() {
  return <Page title="New webhook source">{null}</Page>
}

export function SourcePage() {
  return <Page title="Webhook source">{null}</Page>
}
