import { articles, showArticle } from './articles.js'
import { all, element, one } from './dom.js'

const MAX_RESULTS = 30

/** What can be found: articles, then headings with the text below them, then fields and error codes. */
const readEntries = () => [
  ...articles.map((article) => entryOf(article, '', article.querySelector('p:not(.group, .path)')?.textContent ?? '')),
  ...all('article :is(h2, h3)[id]').map((heading) => entryOf(heading, heading.textContent, textBelow(heading))),
  ...all('article :is(li, tr)[id]').map((item) => {
    const text = all(':scope > .about, :scope > td + td', item).map((each) => each.textContent)
    return entryOf(item, item.querySelector('code')?.textContent, text.join(' '))
  }),
]

/** A part of an article by its name, or the article by its title. */
function entryOf(part, name, text) {
  const title = String(part.closest('article')?.dataset['title'])
  return { id: part.id, name: name || title, context: name && title, text: text.replaceAll(/\s+/g, ' ').trim() }
}

function textBelow(heading) {
  let text = ''
  let next = heading.nextElementSibling
  while (next && !next.matches('h2, h3, .fields, .code, .errors, form')) {
    text += ` ${next.textContent}`
    next = next.nextElementSibling
  }
  return text
}

/** @type {ReturnType<typeof readEntries> | undefined} */
let entries

/**
 * The entries that have all words of the query; first those in whose names words begin so, thus "rate limit" finds the
 * guide before the headers `RateLimit` of each operation.
 */
function find(query) {
  const words = query.toLowerCase().trim().split(/\s+/)
  // Also "session closed" finds `session_closed`.
  const hasAll = (text, before = '') =>
    words.every((word) => ` ${text} ${text.replaceAll('_', ' ')}`.toLowerCase().includes(`${before}${word}`))
  entries ??= readEntries()
  const found = entries.filter(({ name, context, text }) => hasAll(`${name} ${context} ${text}`))
  const isNamed = ({ name }) => hasAll(name, ' ')
  return [...found.filter(isNamed), ...found.filter((entry) => !isNamed(entry))].slice(0, MAX_RESULTS)
}

const renderResult = ({ id, name, context, text }) =>
  element(
    'li',
    {},
    element(
      'a',
      { href: `#${id}` },
      element('b', { textContent: name }),
      element('span', { textContent: context }),
      element('small', { textContent: text }),
    ),
  )

export function startSearch() {
  const dialog = /** @type {HTMLDialogElement} */ (one('dialog.search'))
  const input = /** @type {HTMLInputElement} */ (one('input', dialog))
  const results = one('#results')

  const renderResults = () => {
    const found = input.value.trim() === '' ? undefined : find(input.value)
    results.replaceChildren(...(found ?? []).map(renderResult))
    one('.search-empty').textContent = found?.length === 0 ? `Nothing found for “${input.value}”.` : ''
  }
  const open = () => {
    if (dialog.open) return
    dialog.showModal()
    input.select()
  }

  one('.search-button').addEventListener('click', open)
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof Element && event.target.closest('input, textarea, select')
    if ((event.key === 'k' && (event.ctrlKey || event.metaKey)) || (event.key === '/' && !isTyping)) {
      event.preventDefault()
      open()
    }
  })
  input.addEventListener('input', renderResults)
  input.addEventListener('keydown', ({ key }) => {
    if (key === 'Enter') results.querySelector('a')?.click()
  })
  dialog.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link || event.target === dialog) dialog.close()
    // The article shown already: no hashchange follows.
    if (link?.hash === location.hash) showArticle({ movesFocus: true })
  })
}
