import { EmptyState, Page } from '../components/page.tsx'

export function NotFoundPage() {
  return (
    <Page title="Page not found">
      <EmptyState
        icon="search"
        title="There is no page at this address"
        text="The link may be old. Press ⌘K or Ctrl-K to find workflows, webhook sources and ids."
        action={{ label: 'Overview', link: { to: '/' } }}
      />
    </Page>
  )
}
