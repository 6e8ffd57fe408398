import { copyButton } from './code-blocks.js'
import { all, element, fill, one } from './dom.js'

/** Makes the forms send. Requests go to `requestRoot`, which the page's policy allows. */
export function startForms(requestRoot) {
  // A key or an id that is typed for one operation is that of the others, and of the samples.
  const shared = /** @type {HTMLInputElement[]} */ (all('[name="credential"], [data-parameter="path"]'))
  for (const each of shared) {
    each.addEventListener('input', () => {
      for (const other of shared) if (other.name === each.name && other !== each) other.value = each.value
      fill(each.name, each.value.trim())
    })
  }
  // Pages on plain HTTP have no `randomUUID`.
  for (const each of /** @type {HTMLInputElement[]} */ (all('[name="Idempotency-Key"]')))
    each.value = crypto.getRandomValues(new BigUint64Array(2)).join('-')
  for (const each of all('.address')) each.textContent = new URL(requestRoot).host
  for (const form of all('.try form')) {
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      void submit(form, requestRoot)
    })
  }
}

async function submit(form, requestRoot) {
  const button = one('button', form)
  const answer = /** @type {Element} */ (form.nextElementSibling)
  if (button.getAttribute('aria-disabled') === 'true') return
  button.setAttribute('aria-disabled', 'true')
  answer.replaceChildren(element('p', { className: 'pending', textContent: 'Sending …' }))
  try {
    answer.replaceChildren(...(await send(form, requestRoot)))
  } catch (error) {
    const { message } = /** @type {Error} */ (error)
    const textContent =
      error instanceof TypeError
        ? `The request was not answered: ${message}.`
        : error instanceof SyntaxError
          ? `The body is not JSON: ${message}`
          : message
    answer.replaceChildren(element('p', { className: 'failed', textContent }))
  } finally {
    button.removeAttribute('aria-disabled')
  }
}

async function send(form, requestRoot) {
  const inputs = /** @type {HTMLInputElement[]} */ (all('[data-parameter]', form))
  const missing = inputs.find(({ value, dataset }) => dataset['parameter'] === 'path' && value.trim() === '')
  if (missing) {
    missing.focus()
    throw new Error(`Fill in ${missing.name}.`)
  }
  let path = String(form.dataset['path'])
  const query = new URLSearchParams()
  const credential = /** @type {HTMLInputElement} */ (one('[name="credential"]', form)).value.trim()
  /** @type {Record<string, string>} */
  const headers = credential === '' ? {} : { Authorization: `Bearer ${credential}` }
  for (const { name, value, dataset } of inputs) {
    if (dataset['parameter'] === 'path') path = path.replaceAll(`{${name}}`, encodeURIComponent(value.trim()))
    if (dataset['parameter'] === 'query' && value !== '') query.append(name, value)
    if (dataset['parameter'] === 'header' && value !== '') headers[name] = value
  }
  const body = /** @type {HTMLTextAreaElement | null} */ (form.querySelector('[name="body"]'))?.value
  if (body !== undefined) {
    JSON.parse(body)
    headers['Content-Type'] = 'application/json'
  }
  // `fetch` refuses it with the error of a request that was not answered.
  const unsendable = Object.keys(headers).find((name) => /[^\t -\u00ff]/.test(String(headers[name])))
  if (unsendable) throw new Error(`${unsendable} has a character that a header cannot carry.`)
  const method = String(form.dataset['method'])
  const url = `${requestRoot}${path}${query.size > 0 ? `?${query}` : ''}`
  const began = performance.now()
  const options = /** @type {const} */ ({ credentials: 'omit', cache: 'no-store' })
  const response = await fetch(url, { method, headers, body, ...options })
  const text = await response.text()
  const duration = Math.round(performance.now() - began)
  const copy = copyButton('Copy as curl', () => toCurl(method, url, headers, body))
  return [...renderResponse(response, text, duration), copy]
}

function quote(text) {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

function toCurl(method, url, headers, body) {
  const lines = Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`)
  return [`curl -X ${method} ${quote(url)}`, ...lines, ...(body ? [`-d ${quote(body)}`] : [])].join(' \\\n  ')
}

function renderResponse(response, text, duration) {
  let shown = text
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    // Not JSON: shown as it is.
  }
  const status = element(
    'p',
    { className: `outcome ${response.ok ? 'good' : 'bad'}` },
    element('strong', { textContent: `${response.status} ${response.statusText}`.trim() }),
    element('span', { textContent: `${duration} ms` }),
  )
  const headers = [...response.headers].flatMap(([name, textContent]) => [
    element('dt', { textContent: name }),
    element('dd', { textContent }),
  ])
  const pre = element('pre', { tabIndex: 0 }, element('code', { textContent: shown }))
  const summary = element('summary', { textContent: 'Headers' })
  return [status, ...(shown === '' ? [] : [pre]), element('details', {}, summary, element('dl', {}, ...headers))]
}
