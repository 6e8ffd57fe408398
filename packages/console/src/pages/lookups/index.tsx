import { useNavigate } from '@tanstack/react-router'
import type { AppLookupOut, AppRequest, AppResponseBody } from '@workflow-service/contract'
import { useState } from 'react'
import { call, callConfirmed, invalid, mutate, newId, toList, useIsAdmin, useRead } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { ListPage } from '../../components/data-list.tsx'
import { useDeletion } from '../../components/dialog.tsx'
import { RadioGroup, SelectField, TextAreaField, TextField } from '../../components/fields.tsx'
import { editFormOptions, Form, useForm } from '../../components/form.tsx'
import { Menu } from '../../components/menu.tsx'
import { Notice, Page, pageOf, Section } from '../../components/page.tsx'
import { parseJson } from '../../components/parse-json.ts'
import { linkTo } from '../../components/thing-link.tsx'
import { CopyId, JsonView, KeyValueList } from '../../components/values.tsx'

const KINDS = { http: 'HTTP GET', mcp: 'Model Context Protocol' } as const

export function LookupsPage() {
  const isAdmin = useIsAdmin()
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
      rowLink={({ id }) => linkTo('lookup', id)}
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
  const isAdmin = useIsAdmin()
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
  const isAdmin = useIsAdmin()
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
  const [answer, setAnswer] = useState<AppResponseBody<'testLookup'>>()
  const names = Object.fromEntries(tools.map(({ name }) => [name, name]))
  const form = useForm({
    values: { tool: tools[0]?.name ?? '', arguments: '{}' },
    isTransient: true,
    save: async ({ tool, arguments: text }) => {
      const { value, error } = parseJson(text)
      if (error) throw invalid('arguments', error)
      const body = { tool, arguments: value as Record<string, unknown> }
      setAnswer(await callConfirmed('testLookup', { params: { lookup_id: id }, body }))
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

const FIRST_TOOLS = [
  {
    name: 'find_customer',
    description: 'Finds a customer by the number.',
    path: '/customers/{customer_id}',
    parameters: {
      type: 'object',
      properties: { customer_id: { type: 'string', description: 'The number, such as C-17.' } },
      required: ['customer_id'],
    },
  },
]

type Tools = AppRequest<'saveLookup'>['body']['tools']

const valuesOf = (lookup: AppLookupOut | undefined) => ({
  name: lookup?.name ?? '',
  kind: lookup?.kind ?? ('http' as const),
  url: lookup?.url ?? '',
  header_name: lookup?.header_name ?? '',
  header_value: '',
  tools: JSON.stringify(lookup?.kind === 'mcp' ? FIRST_TOOLS : (lookup?.tools ?? FIRST_TOOLS), null, 2),
  tool_names: lookup?.kind === 'mcp' ? lookup.tools.map(({ name }) => name).join('\n') : '',
})

function readTools({ kind, tools, tool_names: names }: ReturnType<typeof valuesOf>): Tools {
  if (kind === 'mcp') {
    const wanted = names.split(/[\s,]+/).filter(Boolean)
    if (wanted.length === 0) throw invalid('tool_names', 'Enter the names of the tools that agents may call.')
    return wanted.map((name) => ({ name }))
  }
  const { value, error } = parseJson(tools)
  if (error || !Array.isArray(value)) throw invalid('tools', error ?? 'Enter a list of tools.')
  return value as Tools
}

/** Creates a look-up, or edits it. */
function LookupForm({ lookup }: { lookup?: AppLookupOut }) {
  const navigate = useNavigate()
  const [id] = useState(() => lookup?.id ?? newId())
  const form = useForm({
    ...editFormOptions(lookup, valuesOf),
    savedText: lookup ? 'Saved.' : null,
    async save(typed, version) {
      const { header_name: headerName, header_value: headerValue, tool_names: _, ...values } = typed
      const header = { header_name: headerName || null, header_value: headerValue || undefined }
      const body = { ...values, ...header, tools: readTools(typed), version: version || null }
      const saved = await mutate('saveLookup', { params: { lookup_id: id }, body })
      if (!lookup) await navigate(linkTo('lookup', id))
      return saved
    },
  })
  const isMcp = form.values.kind === 'mcp'
  return (
    <Form form={form} action={lookup ? 'Save' : 'Create'} canReset={lookup !== undefined}>
      <div className={lookup ? 'narrow stack' : 'two-columns'}>
        <div className="stack">
          <TextField
            required
            placeholder="Customers"
            hint="You write this name in a workflow’s task. A workflow that names a look-up sends only to the webhook sources that it names, too."
            {...form.field('name', 'Name')}
          />
          <RadioGroup options={KINDS} {...form.field('kind', 'Kind')} />
          <TextField
            type="url"
            inputMode="url"
            required
            spellCheck={false}
            placeholder={isMcp ? 'https://mcp.example.com/mcp' : 'https://api.example.com'}
            hint={
              isMcp
                ? 'A server that speaks the protocol over HTTP. It is asked for its tools when you save.'
                : 'Requests go to this origin only, and redirects are not followed.'
            }
            {...form.field('url', 'URL')}
          />
          <TextField
            spellCheck={false}
            placeholder="Authorization"
            hint="Optional. A header that every request has."
            {...form.field('header_name', 'Header')}
          />
          {form.values.header_name === '' ? null : (
            <TextField
              type="password"
              autoComplete="off"
              hint={
                lookup?.has_header_value ? 'Empty keeps the stored value.' : 'Stored encrypted, and never shown again.'
              }
              {...form.field('header_value', 'Value of the header')}
            />
          )}
        </div>
        {isMcp ? (
          <TextAreaField
            rows={3}
            spellCheck={false}
            hint="One name on each line. Agents can call no other tools of the server, and read the descriptions as they were when you saved."
            {...form.field('tool_names', 'Tools')}
          />
        ) : (
          <TextAreaField
            isCode
            rows={14}
            hint="JSON. Parameters that are not in the path become the query."
            {...form.field('tools', 'Tools')}
          />
        )}
      </div>
    </Form>
  )
}
