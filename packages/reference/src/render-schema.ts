import { entry, Html, html } from './html.ts'
import { type OpenApiDocument, type Parameter, resolve, type Schema } from './openapi-document.ts'
import { renderInline } from './render-markdown.ts'

type Field = Pick<Parameter, 'name' | 'required' | 'description' | 'schema'>

/** Renders the fields of an object. Their ids begin with `idPrefix`. Only in a request some are required. */
export function renderObject(document: OpenApiDocument, schema: Schema, idPrefix: string, isRequest = false): Html {
  const { properties = {}, required = [] } = resolve(document, schema)
  const fields = Object.entries(properties).map(([name, property]) => ({
    name,
    required: isRequest && required.includes(name),
    schema: property,
  }))
  return renderFields(document, fields, idPrefix)
}

/** Renders parameters or the fields of an object, with those of nested objects to be opened. */
export function renderFields(document: OpenApiDocument, fields: readonly Field[], idPrefix: string): Html {
  return html`<ul class="fields">
    ${fields.map((field) => renderField(document, field, `${idPrefix}${field.name}`))}
  </ul>`
}

function renderField(document: OpenApiDocument, field: Field, id: string): Html {
  const { name, required, schema } = field
  const resolved = resolve(document, schema)
  const nested = resolved.items ? resolve(document, resolved.items) : resolved
  const description = field.description ?? schema.description ?? resolved.description
  return html`<li id="${id}">
    <div class="field">
      <code>${name}</code>
      <span class="type">${describeType(document, resolved)}</span
      >${required && html` <span class="required">required</span>`}
    </div>
    ${description !== undefined && html`<div class="about">${renderInline(description)} ${describeLimits(resolved, description)}</div>`}
    ${renderValues(resolved)}
    ${
      nested.properties &&
      html`<details>
        <summary>Fields of <code>${name}</code></summary>
        ${renderObject(document, nested, `${id}.`)}
      </details>`
    }
  </li>`
}

function describeType(document: OpenApiDocument, schema: Schema): string {
  const { type, format, items, const: constant } = schema
  if (constant !== undefined) return JSON.stringify(constant)
  const types = typeof type === 'string' ? [type] : (type ?? ['any'])
  const names = types.map((name) => {
    if (name === 'array' && items) return `list of ${describeType(document, resolve(document, items))}s`
    if (name === 'string' && format) return format === 'uuid' ? 'UUID' : format
    return name
  })
  return names.join(' or ')
}

/** Length and range; values of an enumeration are listed below. */
function describeLimits(schema: Schema, description: string): string {
  const { minLength, maxLength, minimum, maximum, default: standard } = schema
  const limits = [
    maxLength !== undefined &&
      !description.includes(maxLength.toLocaleString('en')) &&
      `${minLength ? `${minLength} to` : 'At most'} ${maxLength.toLocaleString('en')} characters.`,
    minimum !== undefined && maximum !== undefined && maximum < 1_000_000 && `${minimum} to ${maximum}.`,
    standard !== undefined && `Default: ${JSON.stringify(standard)}.`,
  ]
  return limits.filter((limit) => limit !== false).join(' ')
}

/** `a, b or c`. */
const OR = new Intl.ListFormat('en-GB', { type: 'disjunction' })

function renderValues(schema: Schema): Html | undefined {
  if (schema.enum)
    return html`<div class="about">
      One of ${new Html(OR.format(schema.enum.map((value) => html`<code>${String(value)}</code>`.text)))}.
    </div>`
  const known = schema.anyOf?.find((each) => each['x-enumDescriptions'])
  if (!known?.['x-enumDescriptions']) return undefined
  return html`<details>
    <summary>Known values</summary>
    <ul class="fields">
      ${Object.entries(known['x-enumDescriptions']).map(([value, meaning]) => entry(value, renderInline(meaning)))}
    </ul>
  </details>`
}
