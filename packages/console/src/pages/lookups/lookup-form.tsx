import { useNavigate } from '@tanstack/react-router'
import type { AppLookupOut, AppRequest } from '@workflow-service/contract'
import { WEBHOOK_SOURCE_NAME_MAX_LENGTH } from '@workflow-service/contract/limits'
import { useState } from 'react'
import { invalidFields, mutate, newId } from '../../api/index.ts'
import { RadioGroup, TextAreaField, TextField } from '../../components/fields.tsx'
import { editFormOptions, Form, useForm } from '../../components/form.tsx'
import { parseJson } from '../../components/parse-json.ts'

export const KINDS = { http: 'HTTP GET', mcp: 'Model Context Protocol' } as const

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
    if (wanted.length === 0) throw invalidFields({ tool_names: 'Enter the names of the tools that agents may call.' })
    return wanted.map((name) => ({ name }))
  }
  const { value, error } = parseJson(tools)
  if (error || !Array.isArray(value)) throw invalidFields({ tools: error ?? 'Enter a list of tools.' })
  return value as Tools
}

/** Creates a look-up, or edits it. */
export function LookupForm({ lookup }: { lookup?: AppLookupOut }) {
  const navigate = useNavigate()
  const [newLookupId] = useState(newId)
  const id = lookup?.id ?? newLookupId
  const form = useForm({
    ...editFormOptions(lookup, valuesOf),
    savedText: lookup ? 'Saved.' : null,
    async save(typed, version) {
      const { header_name: headerName, header_value: headerValue, name, kind, url } = typed
      const body = {
        name,
        kind,
        url,
        header_name: headerName === '' ? null : headerName,
        ...(headerValue === '' ? {} : { header_value: headerValue }),
        tools: readTools(typed),
        version: version || null,
      }
      const saved = await mutate('saveLookup', { params: { lookup_id: id }, body })
      if (!lookup) await navigate({ to: '/lookups/$lookup_id', params: { lookup_id: id } })
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
            maxLength={WEBHOOK_SOURCE_NAME_MAX_LENGTH}
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
