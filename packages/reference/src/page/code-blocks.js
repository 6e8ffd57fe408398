import { all, element, one, remember, remembered } from './dom.js'

const LANGUAGES = ['curl', 'TypeScript', 'Python']

/** Gives each block of code tabs and a button that copies it. A language is chosen for all blocks at once. */
export function startCodeBlocks() {
  const blocks = all('.code').map((block, index) => createTabs(block, `code-${index}`, chooseLanguage))
  const language = remembered('language')
  if (language) chooseLanguage(language)

  function chooseLanguage(label) {
    if (!LANGUAGES.includes(label)) return
    remember('language', label)
    for (const { labels, select } of blocks) if (labels.includes(label)) select(labels.indexOf(label))
  }
}

function createTabs(block, id, onChosen) {
  const figures = all('figure', block)
  const labels = figures.map(({ dataset }) => String(dataset['label']))
  const tabs = figures.map((figure, index) => {
    const tab = element('button', {
      type: 'button',
      id: `${id}-tab-${index}`,
      role: 'tab',
      'aria-controls': `${id}-panel-${index}`,
      textContent: String(labels[index]),
    })
    figure.id = `${id}-panel-${index}`
    figure.setAttribute('role', 'tabpanel')
    figure.setAttribute('aria-labelledby', tab.id)
    one('figcaption', figure).remove()
    return tab
  })
  const select = (index) => {
    for (const [each, tab] of tabs.entries()) {
      tab.setAttribute('aria-selected', String(each === index))
      tab.tabIndex = each === index ? 0 : -1
      const figure = figures[each]
      if (figure) figure.hidden = each !== index
    }
  }
  const choose = (index) => {
    select(index)
    onChosen(String(labels[index]))
  }
  for (const [index, tab] of tabs.entries()) {
    tab.addEventListener('click', () => choose(index))
    tab.addEventListener('keydown', ({ key }) => {
      const moves = new Map(Object.entries({ ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: -1 }))
      const next = moves.get(key)
      if (next === undefined) return
      choose((next + tabs.length) % tabs.length)
      tabs[(next + tabs.length) % tabs.length]?.focus()
    })
  }
  const list = element(
    'div',
    { className: 'tabs', role: 'tablist', 'aria-label': String(block.dataset['title']) },
    ...tabs,
  )
  const copy = copyButton('Copy', () => one('figure:not([hidden]) code', block).textContent ?? '')
  block.prepend(element('div', { className: 'code-bar' }, list, copy))
  select(0)
  return { labels, select }
}

/** Creates a button that copies a text. */
export function copyButton(textContent, textOf) {
  const copy = element('button', { type: 'button', className: 'copy', textContent })
  copy.addEventListener('click', async () => {
    await copyText(textOf())
    copy.textContent = 'Copied'
    setTimeout(() => (copy.textContent = textContent), 1500)
  })
  return copy
}

async function copyText(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text)
    return
  }
  // Pages on plain HTTP have no clipboard of their own.
  const area = /** @type {HTMLTextAreaElement} */ (element('textarea', { value: text }))
  document.body.append(area)
  area.select()
  document.execCommand('copy')
  area.remove()
}
