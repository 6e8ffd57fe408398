import {
  type FieldError,
  findFileSizeError,
  findJsonObjectErrors,
  findRulesNameError,
  findTimingErrors,
  type SaveAutoRunIn,
  type SaveFileIn,
  type SaveTriggerIn,
} from '@workflow-service/contract'

/** Checks what the schema of a trigger cannot express, by the rules of a manifest (contract README, "Manifest"). */
export function checkTrigger({ events = [], filters, subagent_sources = [] }: Partial<SaveTriggerIn>): FieldError[] {
  const slugs = events.map(({ slug }) => slug)
  const repeated = slugs.flatMap((slug, index) => (slugs.indexOf(slug) < index ? [index] : []))
  return [
    ...repeated.map((index) => error(`events.${index}.slug`, 'is that of an earlier event')),
    ...(filters ? findJsonObjectErrors(filters, 'filters') : []),
    ...subagent_sources.flatMap(({ id, type }, index) => {
      const isInternal = type === 'platform_internal'
      if (isInternal === (id === null)) return []
      const message = isInternal ? 'must be null if the type is platform_internal' : 'must be the id of the source'
      return [error(`subagent_sources.${index}.id`, message)]
    }),
  ]
}

/** Checks that a schedule's day and time zone exist. */
export function checkSchedule({ frequency = 'daily', timing }: Partial<SaveAutoRunIn>): FieldError[] {
  return timing ? findTimingErrors(frequency, timing) : []
}

/**
 * Checks the size of a file's content in UTF-8, that it is not named like rules and would not be followed, and that no
 * name contains the separator of paths: a manifest compares the whole paths of files.
 */
export function checkFile({ name = '', path = [], content = '' }: Partial<SaveFileIn>): FieldError[] {
  const names = [['name', name] as const, ...path.map((folder, index) => [`path.${index}`, folder] as const)]
  const errors = names
    .filter(([, text]) => text.includes('/'))
    .map(([field]) => error(field, 'must not contain a slash: each folder is an entry of path'))
  const nameError = findRulesNameError({ name, path })
  if (nameError) errors.push(nameError)
  const sizeError = findFileSizeError(name, content)
  if (sizeError) errors.push({ field: 'content', code: 'too_large', message: sizeError })
  return errors
}

function error(field: string, message: string): FieldError {
  return { field, code: 'value_error', message }
}
