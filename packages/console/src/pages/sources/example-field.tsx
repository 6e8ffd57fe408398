import { findExampleErrors } from '@workflow-service/contract/check-json-value'
import {
  allowsAnyField,
  allowsAnyValue,
  inferShape,
  isJsonObject,
  type PayloadShape,
} from '@workflow-service/contract/payload-shape'
import { useDeferredValue, useMemo } from 'react'
import { type Bound, TextAreaField } from '../../components/fields.tsx'
import { parseJson } from '../../components/parse-json.ts'

/** Reads the text of an example. `error` says what to correct. */
export function readExample(text: string): { example?: Record<string, unknown>; error?: string } {
  if (text.trim() === '') return { error: 'Enter an example, such as {"order_id": "A-1", "total": 12.5}.' }
  const { value, error } = parseJson(text)
  if (error) return { error }
  const [first] = findExampleErrors(value)
  if (first) {
    const path = first.field.split('.').slice(1).join('.')
    return { error: `${path ? `“${path}” ` : 'The example '}${first.message}.` }
  }
  return isJsonObject(value) ? { example: value } : { error: 'The example must be a JSON object.' }
}

/** The example body, checked while typing, with what the agent learns from it. */
export function ExampleField(props: Bound<string>) {
  const text = useDeferredValue(props.value)
  const { example, error } = useMemo(() => readExample(text), [text])
  return (
    <>
      <TextAreaField
        isCode
        rows={5}
        {...props}
        error={props.error ?? (text.trim() === '' ? undefined : error)}
        hint="What one request contains. For a first try, keep it; later, give the fields that your server expects."
      />
      <details hidden={!example}>
        <summary>What the agent will see</summary>
        <ul className="shape">
          <Fields shape={inferShape(example ?? {})} />
        </ul>
        <p className="field-hint">Every request has exactly these fields. The values are only examples.</p>
      </details>
    </>
  )
}

function Fields({ shape }: { shape: PayloadShape }) {
  const items = shape.list?.object ?? shape.list?.list?.object
  const object = shape.object ?? items
  return [...(object?.fields ?? [])].map(([name, field]) => (
    <li key={name}>
      <code>{name}</code> <span className="muted">{typeText(field)}</span>
      {object?.required.has(name) ? null : <span className="muted">, optional</span>}
      {field.object || field.list ? (
        <ul>
          <Fields shape={field} />
        </ul>
      ) : null}
    </li>
  ))
}

const TYPE_WORDS = { string: 'text', integer: 'number', number: 'number', boolean: 'true or false', null: 'nothing' }

function typeText(shape: PayloadShape): string {
  if (allowsAnyValue(shape)) return 'anything'
  const words = [...shape.scalars].filter((type) => type !== 'null').map((type) => TYPE_WORDS[type])
  if (shape.object) words.push(allowsAnyField(shape.object) ? 'object with any fields' : 'object')
  if (shape.list) words.push(allowsAnyValue(shape.list) ? 'list of anything' : `list of ${typeText(shape.list)}`)
  if (shape.scalars.has('null')) words.push('empty')
  return words.join(' or ')
}
