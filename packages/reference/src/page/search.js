import { articles, showArticle } from './articles.js'
import { all, element, one } from './dom.js'

/**
 * Something that can be found.
 * @typedef {{ id: string, name: string, context: string, text: string, weight: number }} Entry
 */

const MAX_RESULTS = 30

const termsOf = (query) => query.toLowerCase().split(/\s+/).filter(Boolean)

/** What can be found: articles, headings with the text below them, fields and error codes. */
function readEntries() {
  return articles.flatMap((article) => {
    const context = String(article.dataset['title'])
    const entry = (id, name, text, weight) => ({
      id,
      name: name ?? '',
      context,
      text: text.replaceAll(/\s+/g, ' ').trim(),
      weight,
    })
    const introduction = article.querySelector('p:not(.group, .path)')?.textContent ?? ''
    return [
      entry(article.id, context, introduction, 30),
      ...all('h2[id], h3[id]', article).map((heading) =>
        entry(heading.id, heading.textContent, textBelow(heading), 15),
      ),
      ...all('li[id], tr[id]', article).map((item) => {
        const text = all(':scope > .about, :scope > td + td', item).map((each) => each.textContent)
        const weight = item.id.startsWith('error-') ? 12 : item.id.includes('.answer.') ? 0 : 8
        return entry(item.id, item.querySelector('code')?.textContent ?? '', text.join(' '), weight)
      }),
    ]
  })
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

/** How well an entry fits all terms; 0 if it lacks one. */
function scoreOf(entry, terms) {
  const name = entry.name.toLowerCase()
  const words = name.replaceAll('_', ' ')
  const text = `${entry.context} ${entry.text}`.toLowerCase()
  let score = entry.weight
  for (const term of terms) {
    if (words === term || name === term) score += 60
    else if (words.startsWith(term)) score += 40
    else if (`${words} ${name}`.includes(term)) score += 25
    else if (text.includes(term)) score += 4
    else return 0
  }
  return score
}

/** @type {Entry[] | undefined} */
let entries

function find(query) {
  const terms = termsOf(query)
  if (terms.length === 0)
    return articles.map(({ id, dataset }) => ({ id, name: String(dataset['title']), context: '', text: '', weight: 0 }))
  entries ??= readEntries()
  return entries
    .map((entry) => ({ ...entry, score: scoreOf(entry, terms) }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, MAX_RESULTS)
}

/** The text with the terms marked, from a little before the first of them. */
function markTerms(text, query) {
  const terms = termsOf(query)
  const first = Math.min(...terms.map((term) => text.toLowerCase().indexOf(term)).filter((index) => index >= 0))
  const from = Number.isFinite(first) && first > 40 ? text.lastIndexOf(' ', first - 20) + 1 : 0
  const shown = `${from > 0 ? '… ' : ''}${text.slice(from, from + 140)}`
  if (terms.length === 0) return [shown]
  const escaped = terms.map((term) => term.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
  const parts = shown.split(new RegExp(`(${escaped.join('|')})`, 'gi'))
  return parts.map((part, index) => (index % 2 === 1 ? element('mark', { textContent: part }) : part))
}

function renderResult({ id, name, context, text }, index, query) {
  const link = element(
    'a',
    { href: `#${id}`, tabIndex: -1 },
    element('b', {}, ...markTerms(name, query)),
    element('span', { textContent: context === name ? '' : context }),
    element('small', {}, ...markTerms(text, query)),
  )
  return element('li', { id: `result-${index}`, role: 'option' }, link)
}

export function startSearch() {
  const dialog = /** @type {HTMLDialogElement} */ (one('dialog.search'))
  const input = /** @type {HTMLInputElement} */ (one('input', dialog))
  const results = one('#results')
  let active = -1

  const setActive = (index) => {
    active = index
    for (const [each, item] of [...results.children].entries())
      item.setAttribute('aria-selected', String(each === index))
    const item = results.children[index]
    if (item) {
      input.setAttribute('aria-activedescendant', item.id)
      item.scrollIntoView({ block: 'nearest' })
    } else input.removeAttribute('aria-activedescendant')
  }
  const renderResults = () => {
    const found = find(input.value)
    results.replaceChildren(...found.map((entry, index) => renderResult(entry, index, input.value)))
    one('.search-empty').textContent = found.length === 0 ? `Nothing found for “${input.value}”.` : ''
    input.setAttribute('aria-expanded', String(found.length > 0))
    setActive(found.length > 0 ? 0 : -1)
  }
  const open = () => {
    if (dialog.open) return
    dialog.showModal()
    input.select()
    renderResults()
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
  input.addEventListener('keydown', (event) => {
    const { length } = results.children
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      if (length > 0) setActive((active + (event.key === 'ArrowDown' ? 1 : -1) + length) % length)
    } else if (event.key === 'Enter') {
      event.preventDefault()
      results.children[active]?.querySelector('a')?.click()
    }
  })
  dialog.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link || event.target === dialog) dialog.close()
    // The article shown already: no hashchange follows.
    if (link?.hash === location.hash) showArticle({ movesFocus: true })
  })
  one('kbd').textContent = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘ K' : 'Ctrl K'
}
