import { Page } from '../../components/page.tsx'

export function SourceLogPage() {
  return <Page title="Logs">{null}</Page>
}

export function DeliveryDrawer() {
  return <Page title="Delivery">{null}</Page>
}

export function DeliveryPage() {
  return <Page title="Delivery">{null}</Page>
}
