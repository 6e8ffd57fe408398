import { Page } from '../../components/page.tsx'

export function UsagePage() {
  return <Page title="Usage">{null}</Page>
}
