import { entry, type Html, html } from './html.ts'
import { type OpenApiDocument, type Parameter, resolve, type Schema } from './openapi-document.ts'
import { renderInline } from './render-markdown.ts'

/** Renders the parameters of an operation. Their ids begin with `idPrefix`. */
export function renderParameters(document: OpenApiDocument, parameters: readonly Parameter[], idPrefix: string): Html {
  return renderList(
    parameters.map(({ name, required, description, schema }) =>
      renderField(document, {
        name,
        isRequired: required,
        schema: { ...schema, description },
        id: `${idPrefix}${name}`,
      }),
    ),
  )
}

/** Renders the fields of an object, with those of nested objects to be opened. */
export function renderFields(
  document: OpenApiDocument,
  schema: Schema,
  { idPrefix, showsRequired }: { readonly idPrefix: string; readonly showsRequired: boolean },
): Html {
  const { properties = {}, required = [] } = resolve(document, schema)
  return renderList(
    Object.entries(properties).map(([name, property]) =>
      renderField(document, {
        name,
        isRequired: showsRequired && required.includes(name),
        schema: property,
        id: `${idPrefix}${name}`,
      }),
    ),
  )
}

function renderList(items: readonly Html[]): Html {
  return html`<ul class="fields">
    ${items}
  </ul>`
}

interface Field {
  readonly name: string
  readonly isRequired: boolean
  readonly schema: Schema
  readonly id: string
}

function renderField(document: OpenApiDocument, { name, isRequired, schema, id }: Field): Html {
  const resolved = resolve(document, schema)
  const nested = objectOf(document, resolved)
  const description = schema.description ?? resolved.description
  return html`<li id="${id}">
    <div class="field">
      <code>${name}</code>
      <span class="type">${describeType(document, resolved)}</span
      >${isRequired && html` <span class="required">required</span>`}
    </div>
    ${description !== undefined && html`<div class="about">${renderInline(description)} ${renderLimits(resolved)}</div>`}
    ${renderValues(resolved)}
    ${
      nested?.properties &&
      html`<details>
        <summary>Fields of <code>${name}</code></summary>
        ${renderFields(document, nested, { idPrefix: `${id}.`, showsRequired: false })}
      </details>`
    }
  </li>`
}

/** The object that a field holds, by itself or in a list. */
function objectOf(document: OpenApiDocument, schema: Schema): Schema | undefined {
  const item = schema.items ? resolve(document, schema.items) : schema
  return item.properties ? item : undefined
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
function renderLimits({ description = '', minLength, maxLength, minimum, maximum, default: standard }: Schema): Html {
  const limits = [
    maxLength !== undefined &&
      !description.includes(maxLength.toLocaleString('en')) &&
      `${minLength ? `${minLength} to` : 'At most'} ${maxLength.toLocaleString('en')} characters.`,
    minimum !== undefined && maximum !== undefined && maximum < 1_000_000 && `${minimum} to ${maximum}.`,
    standard !== undefined && `Default: ${JSON.stringify(standard)}.`,
  ].filter((limit) => limit !== false)
  return html`<span class="limits">${limits.join(' ')}</span>`
}

function renderValues(schema: Schema): Html | undefined {
  if (schema.enum)
    return html`<div class="about">
      One of ${join(schema.enum.map((value) => html`<code>${String(value)}</code>`))}.
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

function join(parts: readonly Html[]): Html {
  return html`${parts.map((part, index) => html`${index > 0 && (index === parts.length - 1 ? ' or ' : ', ')}${part}`)}`
}
