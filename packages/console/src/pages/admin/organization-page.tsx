import { useNavigate } from '@tanstack/react-router'
import type { AppAnswer } from '@workflow-service/contract'
import { useState } from 'react'
import { call } from '../../api/call.ts'
import { queryClient, useMe, useRead, useWrite } from '../../api/queries.ts'
import { Button } from '../../components/button.tsx'
import { CopyId } from '../../components/copy.tsx'
import { ConfirmDialog } from '../../components/dialog.tsx'
import { TextField } from '../../components/fields.tsx'
import { Form, useForm } from '../../components/form.tsx'
import { KeyValueList } from '../../components/key-value.tsx'
import { download } from '../../components/download.ts'
import { Page, Section } from '../../components/page.tsx'
import { Loaded } from '../../components/states.tsx'
import { Time } from '../../components/time.tsx'
import { tryIt } from '../../components/toast.tsx'

type Organization = AppAnswer<'getOrganization'>

export function OrganizationPage() {
  const me = useMe()
  const organization = useRead('getOrganization')
  return (
    <Page title="Organization">
      <Loaded query={organization}>
        {(data) => (
          <>
            <Section title="Details">
              {me.role === 'member' ? null : (
                <div className="narrow">
                  <NameForm organization={data} />
                </div>
              )}
              <KeyValueList
                items={[
                  ['Name', me.role === 'member' ? data.name : null],
                  ['Id', <CopyId key="id" id={data.id} isShort={false} />],
                  ['Made', <Time key="made" value={data.created_at} isExact />],
                  ['State', data.is_suspended ? 'Suspended: nothing of it runs or is sent.' : 'In use'],
                ]}
              />
            </Section>
            {me.role === 'member' ? null : <Manifest name={data.name} />}
            {me.role === 'owner' ? <DeleteOrganization organization={data} /> : null}
          </>
        )}
      </Loaded>
    </Page>
  )
}

function NameForm({ organization }: { organization: Organization }) {
  const write = useWrite('saveOrganization')
  const form = useForm({
    values: { name: organization.name },
    version: organization.version,
    labels: { name: 'Name' },
    fromCurrent: (current: Organization) => ({ values: { name: current.name }, version: current.version }),
    save: async (values, version) => (await write.mutateAsync({ body: { ...values, version } })).version,
  })
  return (
    <Form form={form} action="Save" canReset>
      <TextField label="Name" {...form.field('name')} />
    </Form>
  )
}

function Manifest({ name }: { name: string }) {
  const [isBusy, setIsBusy] = useState(false)
  async function exportManifest() {
    setIsBusy(true)
    await tryIt(async () => {
      const { yaml } = await call('exportManifest', {})
      download(name, 'yaml', yaml)
    })
    setIsBusy(false)
  }
  return (
    <Section
      title="Manifest"
      intro={
        <>
          Everything of the organization as one YAML file, without secrets and keys: keep it in version control, and
          apply it with <code>wf apply</code>.
        </>
      }
    >
      <div className="actions">
        <Button icon="file" isBusy={isBusy} onClick={() => void exportManifest()}>
          Export the manifest
        </Button>
      </div>
    </Section>
  )
}

function DeleteOrganization({ organization }: { organization: Organization }) {
  const [isAsking, setIsAsking] = useState(false)
  const remove = useWrite('deleteOrganization')
  const navigate = useNavigate()
  return (
    <Section
      title="Delete the organization"
      intro="With its workflows, sessions, runs, webhook sources, logs and keys."
    >
      <div className="actions">
        <Button variant="danger" icon="trash" onClick={() => setIsAsking(true)}>
          Delete the organization
        </Button>
      </div>
      {isAsking ? (
        <ConfirmDialog
          title={`Delete ${organization.name}?`}
          action="Delete everything"
          typed={organization.name}
          onClose={() => setIsAsking(false)}
          onConfirm={async () => {
            await remove.mutateAsync({ body: { name: organization.name } })
            queryClient.clear()
            await navigate({ to: '/sign-in' })
          }}
        >
          <p>This cannot be undone. Export the manifest first if you may want the workflows back.</p>
        </ConfirmDialog>
      ) : null}
    </Section>
  )
}
