import { useMe } from '../../api/queries.ts'
import { Page } from '../../components/page.tsx'
import { Notice } from '../../components/states.tsx'
import { SourceForm } from './source-form.tsx'

export function NewSourcePage() {
  const { role } = useMe()
  return (
    <Page
      title="New webhook source"
      back={['Webhook sources', { to: '/sources' }]}
      intro="An endpoint of yours, to which agents send data."
    >
      {role === 'member' ? (
        <Notice>Only admins can add webhook sources. Ask an admin of your organization.</Notice>
      ) : (
        <SourceForm />
      )}
    </Page>
  )
}
