import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { read } from '../api/index.ts'
import { Combobox } from './combobox.tsx'

interface WorkflowPickerProps {
  label: string
  isLabelHidden?: boolean
  placeholder: string
  value?: string | undefined
  onValue: (workflowId: string) => void
}

/** A field that finds a workflow by its name. A chosen one can be replaced by none: an empty id. */
export function WorkflowPicker({ value = '', onValue, ...field }: WorkflowPickerProps) {
  const [search, setSearch] = useState('')
  const query = { limit: 20, ...(search ? { search } : {}) }
  const found = useQuery({ ...read('listWorkflows', { query }), placeholderData: keepPreviousData })
  const chosen = useQuery({ ...read('getWorkflow', { params: { workflow_id: value } }), enabled: value !== '' }).data
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
      onValue={(id) => {
        setSearch('')
        onValue(id)
      }}
      onSearch={(text) => setSearch(text.trim())}
      problem={found.error}
      options={workflows.map(({ id, name }) => ({ value: id, label: name }))}
    />
  )
}
