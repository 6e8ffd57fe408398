import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { queryFor } from '../api/index.ts'
import { Combobox, type ComboboxProps, SHOWN } from './combobox.tsx'

interface WorkflowPickerProps extends Omit<ComboboxProps, 'options' | 'value'> {
  placeholder: string
  value?: string | undefined
}

const useWorkflow = (id: string) =>
  useQuery({ ...queryFor('getWorkflow', { params: { workflow_id: id } }), enabled: id !== '' }).data
/** The name of a workflow, once it is read. */
export const useWorkflowName = (id = ''): string => useWorkflow(id)?.name ?? 'one'

/** A field that finds a workflow by its name. A chosen one can be replaced by none: an empty id. */
export function WorkflowPicker({ value = '', ...field }: WorkflowPickerProps) {
  const [search, setSearch] = useState('')
  const query = { limit: 20, ...(search ? { search } : {}) }
  const found = useQuery({ ...queryFor('listWorkflows', { query }), placeholderData: keepPreviousData })
  const chosen = useWorkflow(value)
  const none = { id: '', name: field.placeholder }
  const workflows = [
    ...(value ? [none] : []),
    ...(chosen ? [chosen] : []),
    ...(found.data?.data ?? []).filter(({ id }) => id !== value),
  ]
  return (
    <Combobox
      {...field}
      value={value || null}
      onSearch={(text) => setSearch(text.trim())}
      problem={found.error}
      options={workflows.map(({ id, name }) => ({ value: id, label: name }))}
    />
  )
}

/** The people that a text finds, or without one the first ones, as the options of a field. */
export function useUserOptions() {
  const [q, setSearch] = useState('')
  const first = useQuery({ ...queryFor('listUsers', { query: { limit: SHOWN } }), enabled: q === '' })
  const found = useQuery({
    ...queryFor('search', { query: { q } }),
    enabled: q !== '',
    placeholderData: keepPreviousData,
    refetchInterval: false,
  })
  const named = first.data?.data.map(({ id, email, first_name, last_name }) => {
    return { id, title: `${first_name} ${last_name}`.trim(), detail: email }
  })
  // The first ones also while others are read.
  const people = q && found.data ? found.data.data.filter(({ kind }) => kind === 'user') : named
  const options = (people ?? []).map(({ id, title, detail }) => ({
    value: id,
    label: [...new Set([title, detail])].filter(Boolean).join(', '),
  }))
  return { options, problem: first.error ?? found.error, onSearch: (text: string) => setSearch(text.trim()) }
}
