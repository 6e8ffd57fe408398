import type { AppAnswer, AppLookupOut } from '@workflow-service/contract'
import { useState } from 'react'
import { call, mutate, toList, useMe, useRead } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { ListPage } from '../../components/data-list.tsx'
import { useDeletion } from '../../components/dialog.tsx'
import { SelectField, TextAreaField } from '../../components/fields.tsx'
import { Form, useForm } from '../../components/form.tsx'
import { Menu } from '../../components/menu.tsx'
import { Notice, Page, pageOf, Section } from '../../components/page.tsx'
import { parseJson } from '../../components/parse-json.ts'
import { CopyId, JsonView, KeyValueList } from '../../components/values.tsx'
import { KINDS, LookupForm } from './lookup-form.tsx'

export function LookupsPage() {
  const isAdmin = useMe().role !== 'member'
  return (
    <ListPage
      title="Look-ups"
      intro="What agents with a model may read before they send. A workflow uses one by naming it in its task."
      create={isAdmin ? { label: 'New look-up', link: { to: '/lookups/new' } } : undefined}
      label="look-ups"
      list={toList(useRead('listLookups'))}
      columns={[
        { header: 'Name', cell: ({ name }) => name },
        { header: 'Kind', cell: ({ kind }) => KINDS[kind], isShort: true },
        { header: 'URL', cell: ({ url }) => <span className="muted clamp url">{url}</span>, isOptional: true },
        { header: 'Tools', cell: ({ tools }) => tools.map(({ name }) => name).join(', '), isSecondary: true },
      ]}
      rowLink={({ id }) => ({ to: '/lookups/$lookup_id', params: { lookup_id: id } })}
      empty={{
        icon: 'search',
        title: 'No look-up yet',
        text: isAdmin
          ? 'Connect an HTTP API or a server of the Model Context Protocol from which agents read.'
          : 'An admin of your organization can connect what agents may read.',
      }}
    />
  )
}

export function NewLookupPage() {
  const isAdmin = useMe().role !== 'member'
  return (
    <Page
      title="New look-up"
      back={['Look-ups', { to: '/lookups' }]}
      intro="An API from which agents with a model read."
    >
      {isAdmin ? <LookupForm /> : <Notice>Only admins can add look-ups. Ask an admin of your organization.</Notice>}
    </Page>
  )
}

export const LookupPage = pageOf('getLookup', LookupDetails)

function LookupDetails(lookup: AppLookupOut) {
  const { id, name, kind, url, tools } = lookup
  const isAdmin = useMe().role !== 'member'
  const askToDelete = useDeletion()
  const remove = () =>
    askToDelete({
      name,
      text: 'Workflows that name it find no look-up. Runs keep what it answered.',
      action: 'Delete look-up',
      remove: () => call('deleteLookup', { params: { lookup_id: id } }),
      list: '/lookups',
    })
  return (
    <Page
      title={name}
      back={['Look-ups', { to: '/lookups' }]}
      meta={<CopyId id={id} isShort label="look-up id" />}
      actions={
        isAdmin ? (
          <Menu label="More actions" items={[{ label: 'Delete', icon: 'trash', variant: 'danger', onClick: remove }]} />
        ) : null
      }
    >
      <div className="two-columns">
        {isAdmin ? <LookupForm lookup={lookup} /> : <KeyValueList items={{ Kind: KINDS[kind], URL: url }} />}
        <div className="stack">
          <Section title="What the agent sees">
            <JsonView label="tools" value={tools.map(({ path: _path, ...tool }) => tool)} />
          </Section>
          {isAdmin ? <Test lookup={lookup} /> : null}
        </div>
      </div>
    </Page>
  )
}

/** Calls a tool, as a run would. */
function Test({ lookup: { id, tools } }: { lookup: AppLookupOut }) {
  const [answer, setAnswer] = useState<AppAnswer<'testLookup'>>()
  const names = Object.fromEntries(tools.map(({ name }) => [name, name]))
  const form = useForm({
    values: { tool: tools[0]?.name ?? '', arguments: '{}' },
    isTransient: true,
    save: async ({ tool, arguments: text }) => {
      const { value, error } = parseJson(text)
      if (error) throw new Error(`The arguments are no JSON. ${error}`)
      const body = { tool, arguments: value as Record<string, unknown> }
      setAnswer(await mutate('testLookup', { params: { lookup_id: id }, body }))
    },
  })
  return (
    <Section title="Try it" intro="Makes the request now, and shows what an agent would read.">
      <Form form={form} action="Look up">
        <SelectField options={names} {...form.field('tool', 'Tool')} />
        <TextAreaField isCode rows={3} {...form.field('arguments', 'Arguments as JSON')} />
      </Form>
      {answer ? (
        <Notice kind={answer.ok ? 'good' : 'warning'}>
          <p role="status">
            {answer.ok ? 'Answered' : 'No result'}
            {answer.status === null ? '' : `, status ${answer.status}`}, {answer.bytes} bytes, {answer.duration_ms} ms
            {answer.is_cut_off ? '. The answer is longer; this is its beginning' : ''}.
          </p>
          <pre className="code">{answer.text}</pre>
          <Button label="Clear" variant="ghost" className="small" onClick={() => setAnswer(undefined)} />
        </Notice>
      ) : null}
    </Section>
  )
}
