import { entry, Html, html } from './html.ts'
import {
  examplesOf,
  type OpenApiDocument,
  type Operation,
  operationsOf,
  resolve,
  type ResponseObject,
  schemaOf,
} from './openapi-document.ts'
import { SCRIPT, STYLE } from './page-assets.ts'
import { jsonCode, renderCode } from './render-code.ts'
import { renderInline, renderMarkdown } from './render-markdown.ts'
import { renderFields, renderObject } from './render-schema.ts'
import { createSamples } from './samples.ts'

/** A guide in Markdown. Its headings begin at level 2. */
export interface Guide {
  /** The id of its article, which links use. */
  readonly id: string
  readonly title: string
  readonly markdown: string
}

interface ErrorEntry {
  readonly code: string
  readonly status: number
  readonly meaning: string
  /** What the caller can do. */
  readonly action: string
}

export interface Reference {
  readonly document: OpenApiDocument
  /** Whether the address in samples is replaced by that of the page. */
  readonly usesPageAddress: boolean
  readonly guides: readonly Guide[]
  readonly errors: readonly ErrorEntry[]
  readonly fieldCodes: Readonly<Record<string, string>>
  /** How the TypeScript client calls the operation of this id. */
  readonly clientSampleOf: (operationId: string) => string
}

/** An article of the page: one guide, operation or webhook. One at a time is shown. */
interface Article {
  readonly id: string
  readonly title: string
  readonly group: string
  readonly method?: string
  readonly body: Html
}

/** Renders the page as one HTML file without references to other files. */
export function renderReference(reference: Reference): string {
  const { document } = reference
  const articles = listArticles(reference)
  const server = document.servers[0]?.url ?? ''
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta
          name="description"
          content="${document.info.title}: guides and reference of every request, answer and error."
        />
        <title>${document.info.title}: API reference</title>
        <link rel="icon" type="image/svg+xml" href="${ICON}" />
        ${inline('style', STYLE)}
      </head>
      <body data-server="${server}" ${reference.usesPageAddress && html` data-uses-page-address`}>
        <a class="skip" href="#content">Skip to the content</a>
        <header class="top">
          <button type="button" class="menu" aria-expanded="false" aria-controls="nav" aria-label="Menu">
            ${MENU_ICON}
          </button>
          <a class="brand" href="#${articles[0]?.id}"
            ><span class="mark">${LOGO}</span><span class="brand-name">${document.info.title}</span></a
          >
          <button type="button" class="search-button" aria-keyshortcuts="Control+K /">
            ${SEARCH_ICON}<span>Search</span><kbd>/</kbd>
          </button>
        </header>
        <div class="frame">
          <nav id="nav" aria-label="Reference">
            ${renderNavigation(articles)}
            <p class="nav-end">
              <a href="v1/openapi.json">OpenAPI document</a> <span>version ${document.info.version}</span>
            </p>
          </nav>
          <main id="content" tabindex="-1">
            <p id="unknown" role="status" hidden></p>
            ${articles.map(renderArticle)}
          </main>
        </div>
        <dialog class="search" aria-label="Search">
          <input
            type="text"
            aria-label="Search the reference"
            placeholder="Search guides, operations, fields and errors"
            autocomplete="off"
            spellcheck="false"
          />
          <ul id="results" aria-label="Results"></ul>
          <p class="search-empty" role="status"></p>
        </dialog>
        ${inline('script', SCRIPT)}
      </body>
    </html> `
  return page.text
}

function listArticles(reference: Reference): Article[] {
  const { document, guides, errors } = reference
  const operations = operationsOf(document.paths)
  const linkErrors = createErrorLinks(errors)
  return [
    {
      id: 'introduction',
      title: 'Introduction',
      group: 'Guides',
      body: html`<div class="prose">
        ${renderMarkdown(document.info.description, 'introduction-')}
        <h2 id="base-url">Base URL</h2>
        ${renderCode([{ label: 'Base URL', language: 'text', text: document.servers[0]?.url ?? '' }])}
        <h2 id="credential">API key</h2>
        <p>${renderInline(Object.values(document.components.securitySchemes)[0]?.description ?? '')}</p>
      </div>`,
    },
    ...guides.map(({ id, title, markdown }) => ({
      id,
      title,
      group: 'Guides',
      body: html`<div class="prose">${linkErrors(renderMarkdown(markdown, `${id}-`))}</div>`,
    })),
    ...document.tags.flatMap(({ name }) =>
      operations
        .filter(({ tags }) => tags.includes(name))
        .map((operation) => ({
          id: operation.operationId,
          title: operation.summary,
          group: name,
          method: operation.method,
          body: linkErrors(renderOperation(reference, operation)),
        })),
    ),
    ...operationsOf(document.webhooks).map((webhook) => ({
      id: webhook.operationId,
      title: webhook.summary,
      group: 'Webhooks',
      method: webhook.method,
      body: renderWebhook(document, webhook),
    })),
    { id: 'errors', title: 'Error codes', group: 'Errors', body: renderErrors(reference) },
  ]
}

function renderNavigation(articles: readonly Article[]): Html {
  const groups = [...new Set(articles.map(({ group }) => group))]
  return html`${groups.map(
    (group) =>
      html`<h2>${group}</h2>
        <ul>
          ${articles
            .filter((article) => article.group === group)
            .map(
              ({ id, title, method }) =>
                html`<li>
                  <a href="#${id}"
                    ><span>${title}</span
                    >${method !== undefined && html` <span class="method ${method.toLowerCase()}">${method}</span>`}</a
                  >
                </li>`,
            )}
        </ul>`,
  )}`
}

function renderArticle({ id, title, group, body }: Article): Html {
  return html`<article id="${id}" data-title="${title}">
    <p class="group">${group}</p>
    <h1 tabindex="-1">${title}</h1>
    ${body}
  </article> `
}

function renderOperation(reference: Reference, operation: Operation): Html {
  const { document } = reference
  const { operationId: id, method, path, description, parameters, requestBody, responses: byStatus } = operation
  const body = schemaOf(requestBody?.content)
  const named = (kind: string) => parameters.filter((parameter) => parameter.in === kind)
  const section = (title: string, anchor: string, content: Html) =>
    html`<h2 id="${id}-${anchor}">${title}</h2>
      ${content}`
  const parameterSection = (title: string, kind: string) =>
    named(kind).length > 0 && section(title, kind, renderFields(document, named(kind), `${id}.`))
  const responses = Object.entries(byStatus)
    .map(([status, response]) => ({ status, ...resolve(document, response) }))
    .filter(({ 'x-error-codes': codes }) => codes?.length !== 0)
  const successes = responses.filter(({ status }) => Number(status) < 400)
  return html`<p class="path">
      <span class="method ${method.toLowerCase()}">${method}</span> <code>${path}</code>
      <a class="try-link" href="#${id}-try">Try it</a>
    </p>
    <div class="split">
      <div class="text prose">
        ${renderMarkdown(description, `${id}-`)} ${parameterSection('Path parameters', 'path')}
        ${parameterSection('Query parameters', 'query')} ${parameterSection('Headers', 'header')}
        ${body && section('Body', 'body', renderObject(document, body, `${id}.`, true))}
        ${successes.map(({ status, description: about, content }) => {
          const schema = schemaOf(content)
          return section(
            `Answer ${status}`,
            `answer-${status}`,
            html`<p>${renderInline(about)}</p>
              ${schema && renderObject(document, schema, `${id}.answer.`)}`,
          )
        })}
        ${section('Errors', 'errors', renderErrorResponses(reference, responses, `${id}.answer.4xx.`))}
        ${renderHeaders(document, id, responses[0]?.headers)}
      </div>
      <div class="aside">
        ${renderCode(createSamples(document, operation, reference.clientSampleOf(id)), 'Request')}
        ${renderCode(
          responses.flatMap(({ status, content }) =>
            examplesOf(content)
              .slice(0, 1)
              .map((example) => jsonCode(status, example)),
          ),
          'Answer',
        )}
      </div>
    </div>
    ${renderTryIt(operation)}`
}

/** The codes of each error status. What they mean is said once, in `errors`. */
function renderErrorResponses(
  { document, errors }: Reference,
  responses: readonly ({ readonly status: string } & ResponseObject)[],
  idPrefix: string,
): Html {
  const failures = responses.filter(({ status }) => Number(status) >= 400)
  const body = schemaOf(failures[0]?.content)
  return html`<p>
      An error has one of these codes. <a href="#errors">Error codes</a> says what each means and what to do.
    </p>
    <ul class="statuses">
      ${failures.map(({ status, 'x-error-codes': possible }) => {
        const codes = errors.filter(({ code }) => possible?.includes(code))
        return html`<li>
          <b>${status}</b>
          <span>${codes.map(({ code }) => html`<code>${code}</code> `)}</span>
        </li>`
      })}
    </ul>
    <details>
      <summary>Body of each of these statuses</summary>
      ${body && renderObject(document, body, idPrefix)}
    </details>`
}

function renderHeaders({ components: { headers: known } }: OpenApiDocument, id: string, headers: object = {}): Html {
  return html`<details id="${id}-answer-headers">
    <summary>Headers of the answer</summary>
    <ul class="fields">
      ${Object.keys(headers).map((name) =>
        entry(name, renderInline(known[name]?.description ?? ''), `${id}.header.${name}`),
      )}
    </ul>
  </details>`
}

function renderTryIt(operation: Operation): Html {
  const { operationId: id, method, path, parameters, requestBody } = operation
  const body = requestBody && JSON.stringify(examplesOf(requestBody.content)[0], null, 2)
  return html`<section class="try">
    <h2 id="${id}-try">Try it</h2>
    <form data-method="${method}" data-path="${path}" novalidate>
      <div class="inputs">
        <label class="wide"
          ><span>API key</span
          ><input
            type="password"
            name="credential"
            placeholder="wfk_…"
            autocomplete="off"
            spellcheck="false"
            autocapitalize="off"
          /><small>Stays in this page’s memory; a reload forgets it.</small></label
        >
        ${parameters.map(({ name, in: kind, required, schema }) => {
          const isId = kind === 'path'
          const [example] = schema.examples ?? []
          return html`<label
            ><span><code>${name}</code>${required && html` <em>required</em>`}</span
            ><input
              type="text"
              data-parameter="${kind}"
              name="${name}"
              ${isId && html` data-example="${typeof example === 'string' ? example : ''}"`}
              autocomplete="off"
              spellcheck="false"
            />${name === 'Idempotency-Key' && html`<small>A new one for each start. Send the same again to see that nothing starts twice.</small>`}</label
          >`
        })}
        ${body !== undefined && html`<label class="wide"><span>Body</span><textarea name="body" rows="${Math.min(16, body.split('\n').length + 1)}" spellcheck="false">${body}</textarea></label>`}
      </div>
      <p class="actions">
        <button type="submit" class="primary">Send request</button>
        <span>Sends a real ${method} to <code class="address"></code></span>
      </p>
    </form>
    <div class="answer" aria-live="polite"></div>
  </section>`
}

function renderWebhook(document: OpenApiDocument, webhook: Operation): Html {
  const { operationId: id, method, description, parameters, requestBody, responses } = webhook
  const body = schemaOf(requestBody?.content)
  const schema = body && resolve(document, body)
  return html`<p class="path">
      <span class="method ${method.toLowerCase()}">${method}</span> <code>your endpoint URL</code>
    </p>
    <div class="split">
      <div class="text prose">
        ${renderMarkdown(description, `${id}-`)}
        <h2 id="${id}-headers">Headers</h2>
        ${renderFields(document, parameters, `${id}.`)}
        <h2 id="${id}-body">Body</h2>
        ${schema?.properties ? renderObject(document, schema, `${id}.`) : html`<p>${renderInline(schema?.description ?? '')}</p>`}
        <h2 id="${id}-answers">Your answer</h2>
        ${renderMeanings(
          'Status',
          Object.entries(responses).map(([status, response]) => [
            status === 'default' ? 'other' : status,
            resolve(document, response).description,
          ]),
        )}
        <p>The guide <a href="#receiving">Receiving</a> shows how to check the token and answer.</p>
      </div>
      <div class="aside">
        ${renderCode(
          examplesOf(requestBody?.content).map((example) => jsonCode('Body', example)),
          'Example',
        )}
      </div>
    </div>`
}

function renderErrors({ errors, fieldCodes }: Reference): Html {
  const example = {
    error: {
      code: 'not_found',
      message: 'Workflow not found.',
      request_id: '01a1fd4e-f105-74b4-8d5a-5afed503624a',
    },
  }
  return html`<div class="split">
      <div class="text prose">
        <p>
          Every error has this body, regardless of its status. Match on <code>error.code</code>, never on
          <code>error.message</code>, which may change. Codes may be added: treat an unknown one by its status. Quote
          <code>error.request_id</code> to support.
        </p>
      </div>
      <div class="aside">${renderCode([jsonCode('Error', example)])}</div>
    </div>
    <ul class="errors">
      ${errors.map(
        ({ code, status, meaning, action }) =>
          html`<li id="error-${code}">
            <div class="field"><code>${code}</code> <span class="status">${status}</span></div>
            <div class="about">${renderInline(capitalize(meaning))}.</div>
            <div class="about do">${renderInline(action)}</div>
          </li>`,
      )}
    </ul>
    <h2 id="field-codes">Field codes</h2>
    <p>
      A 422 <code>validation_error</code> lists in <code>error.details</code> every field that fails, with
      <code>field</code>, <code>code</code> and <code>message</code>.
    </p>
    ${renderMeanings('Code', Object.entries(fieldCodes), 'field-code-')}`
}

/** A table of codes with what they mean; `idPrefix` gives each row an id. */
function renderMeanings(title: string, meanings: readonly (readonly [string, string])[], idPrefix?: string): Html {
  return html`<div class="table" tabindex="0">
    <table>
      <thead>
        <tr>
          <th>${title}</th>
          <th>Meaning</th>
        </tr>
      </thead>
      <tbody>
        ${meanings.map(
          ([code, meaning]) =>
            html`<tr ${idPrefix !== undefined && html`id="${idPrefix}${code}"`}>
              <td><code>${code}</code></td>
              <td>${renderInline(meaning)}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`
}

/** Makes error codes in texts links to the list of errors. */
function createErrorLinks(errors: readonly ErrorEntry[]): (content: Html) => Html {
  const codes = new Set(errors.map(({ code }) => code))
  return ({ text }) =>
    new Html(
      text.replaceAll(/(?<!<summary>[^<]*)<code>([a-z_]+)<\/code>(?!<\/a>)/g, (code, name: string) =>
        codes.has(name) ? `<a href="#error-${name}">${code}</a>` : code,
      ),
    )
}

/** A style or script of the page, exactly as the policy has its hash. */
function inline(name: 'style' | 'script', text: string): Html {
  return new Html(`<${name}>${text}</${name}>`)
}

function capitalize(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

const icon = (path: string): Html =>
  new Html(
    `<svg viewBox="0 0 24 24" width="18" height="18" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${path}</svg>`,
  )
const MENU_ICON = icon('<path d="M4 7h16M4 12h16M4 17h16"/>')
const SEARCH_ICON = icon('<circle cx="11" cy="11" r="6.5"/><path d="m16 16 4.5 4.5"/>')
const LOGO_SHAPES =
  '<rect width="32" height="32" rx="8" fill="#4f46e5"/><path d="M7 11h5l4 10 4-10h5" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/>'
const LOGO = new Html(`<svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true">${LOGO_SHAPES}</svg>`)
const ICON = `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${LOGO_SHAPES}</svg>`)}`
