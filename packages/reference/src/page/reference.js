// The script of the page: shows one article at a time, searches, switches samples, and sends requests that a reader tries.
// The page works without it as one long document.
function one(selector, within = document) {
  return within.querySelector(selector)
}
function all(selector, within = document) {
  return [...within.querySelectorAll(selector)]
}

{
  const root = document.documentElement
  const { server, root: rootPath, usesPageAddress } = document.body.dataset
  const articles = [...document.querySelectorAll('article')]
  const pageTitle = document.title

  /** Creates an element; the page's policy allows no HTML from text. */
  function element(name, properties = {}, ...children) {
    const created = document.createElement(name)
    for (const [key, value] of Object.entries(properties)) {
      if (key in created) created[key] = value
      else created.setAttribute(key, value)
    }
    created.append(...children)
    return created
  }

  const storage = {
    get(name) {
      try {
        return localStorage.getItem(name)
      } catch {
        return null
      }
    },
    set(name, value) {
      try {
        localStorage.setItem(name, value)
      } catch {
        // The browser keeps nothing for this page.
      }
    },
  }

  // The page is also served at / and /docs/: from here on its address is that of /docs, on which its links depend.
  if (!location.pathname.endsWith('/docs')) {
    const path = location.pathname.replace(/(?:docs)?\/$/, 'docs')
    history.replaceState(null, '', `${path}${location.hash}`)
  }
  const address = usesPageAddress === undefined ? server : new URL(rootPath, location.href).href.replace(/\/$/, '')
  // Requests go to this origin, which the page's policy allows; samples name the address of the service.
  const requestRoot = new URL(rootPath, location.href).href.replace(/\/$/, '')
  replaceServer()

  function replaceServer() {
    for (const code of all('.code code')) {
      const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT)
      while (walker.nextNode()) {
        const node = walker.currentNode
        if (node.data.includes(server)) node.data = node.data.replaceAll(server, address)
      }
    }
  }

  // --- One article at a time ---

  // Find-in-page also searches hidden articles, and shows the one with the match.
  for (const article of articles) {
    article.addEventListener('beforematch', () => {
      // Links into a hidden article also fire this; their hash is set already.
      if (!article.contains(targetOfHash())) location.hash = article.id
    })
  }

  function targetOfHash() {
    return document.querySelector(`[id="${CSS.escape(location.hash.slice(1))}"]`)
  }

  function show({ movesFocus }) {
    // The link that skips the navigation leads to the article that is shown.
    if (location.hash === '#content' && articles.some((each) => each.hidden)) return
    const target = targetOfHash()
    const article = target?.closest('article') ?? articles[0]
    for (const each of articles) {
      if (each === article) each.removeAttribute('hidden')
      else each.setAttribute('hidden', 'until-found')
    }
    document.title = `${article.dataset.title} · ${pageTitle}`
    for (const link of all('#nav a')) {
      if (link.hash === `#${article.id}`) link.setAttribute('aria-current', 'page')
      else link.removeAttribute('aria-current')
    }
    one('#nav a[aria-current]')?.scrollIntoView({ block: 'nearest' })
    setMenu(false)
    for (let box = target?.parentElement; box; box = box.parentElement) if (box.tagName === 'DETAILS') box.open = true
    if (target && target !== article) target.scrollIntoView()
    else scrollTo(0, 0)
    for (const marked of all('.target')) marked.classList.remove('target')
    if (target?.matches('li, tr')) target.classList.add('target')
    if (movesFocus) one('h1', article).focus({ preventScroll: true })
  }
  addEventListener('hashchange', () => show({ movesFocus: true }))

  const menu = one('.menu')
  const nav = one('#nav')
  function setMenu(isOpen) {
    menu.setAttribute('aria-expanded', String(isOpen))
    root.classList.toggle('menu-open', isOpen)
  }
  menu.addEventListener('click', () => {
    setMenu(menu.getAttribute('aria-expanded') === 'false')
    if (root.classList.contains('menu-open')) one('a', nav).focus()
  })
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && root.classList.contains('menu-open')) {
      setMenu(false)
      menu.focus()
    }
  })

  // --- Theme ---

  const themes = ['system', 'light', 'dark']
  const themeButton = one('.theme')
  function setTheme(theme) {
    if (theme === 'system') delete root.dataset.theme
    else root.dataset.theme = theme
    themeButton.setAttribute('aria-label', `Theme: ${theme === 'system' ? 'as the system' : theme}`)
    themeButton.title = themeButton.getAttribute('aria-label')
  }
  setTheme(root.dataset.theme === 'light' || root.dataset.theme === 'dark' ? root.dataset.theme : 'system')
  themeButton.addEventListener('click', () => {
    const theme = themes[(themes.indexOf(root.dataset.theme ?? 'system') + 1) % themes.length]
    setTheme(theme)
    storage.set('theme', theme === 'system' ? '' : theme)
  })

  // --- Code: tabs and copying ---

  let tabCount = 0
  const blocks = all('.code').map((block) => {
    const figures = all('figure', block)
    const tabs = figures.map((figure) => {
      tabCount += 1
      figure.id ||= `panel-${tabCount}`
      figure.setAttribute('role', 'tabpanel')
      const tab = element('button', { type: 'button', id: `tab-${tabCount}`, textContent: figure.dataset.label })
      tab.setAttribute('role', 'tab')
      tab.setAttribute('aria-controls', figure.id)
      figure.setAttribute('aria-labelledby', tab.id)
      one('figcaption', figure).remove()
      return tab
    })
    const list = element('div', { className: 'tabs' }, ...tabs)
    list.setAttribute('role', 'tablist')
    list.setAttribute('aria-label', block.dataset.title)
    const select = (index) => {
      for (const [each, tab] of tabs.entries()) {
        tab.setAttribute('aria-selected', String(each === index))
        tab.tabIndex = each === index ? 0 : -1
        figures[each].hidden = each !== index
      }
    }
    const chooseAt = (index) => {
      const label = figures[index].dataset.label
      select(index)
      if (isLanguage(label)) {
        storage.set('language', label)
        selectLanguage(label)
      }
    }
    for (const [index, tab] of tabs.entries()) {
      tab.addEventListener('click', () => chooseAt(index))
      tab.addEventListener('keydown', ({ key }) => {
        const moves = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1 }
        if (!(key in moves)) return
        const next = (moves[key] + tabs.length) % tabs.length
        chooseAt(next)
        tabs[next].focus()
      })
    }
    const copy = element('button', { type: 'button', className: 'copy', textContent: 'Copy' })
    copy.addEventListener('click', async () => {
      const shown = figures.find((figure) => !figure.hidden)
      await copyText(one('code', shown).textContent)
      copy.textContent = 'Copied'
      setTimeout(() => (copy.textContent = 'Copy'), 1500)
    })
    block.prepend(element('div', { className: 'code-bar' }, list, copy))
    select(0)
    return { labels: figures.map((figure) => figure.dataset.label), select }
  })
  function isLanguage(label) {
    return ['curl', 'TypeScript', 'Python'].includes(label)
  }
  function selectLanguage(label) {
    for (const { labels, select } of blocks) if (labels.includes(label)) select(labels.indexOf(label))
  }
  const language = storage.get('language')
  if (language && isLanguage(language)) selectLanguage(language)

  async function copyText(text) {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text)
      return
    }
    // Pages on plain HTTP have no clipboard of their own.
    const area = element('textarea', { value: text })
    document.body.append(area)
    area.select()
    document.execCommand('copy')
    area.remove()
  }

  // --- Search ---

  const dialog = one('dialog.search')
  const input = one('input', dialog)
  const results = one('#results')
  const empty = one('.search-empty')
  const MAX_RESULTS = 30
  let entries
  let active = -1

  /** What can be found: articles, headings with the text below them, fields and error codes. */
  function readEntries() {
    const found = []
    for (const article of articles) {
      const { title } = article.dataset
      const add = (id, name, text, weight) =>
        found.push({ id, name, context: title, text: text.replaceAll(/\s+/g, ' ').trim(), weight })
      add(article.id, title, one('p:not(.group, .path)', article)?.textContent ?? '', 30)
      for (const heading of all('h2[id], h3[id]', article)) {
        let text = ''
        for (
          let next = heading.nextElementSibling;
          next && !next.matches('h2, h3, .fields, .code, .errors, form');
          next = next.nextElementSibling
        ) {
          text += ` ${next.textContent}`
        }
        add(heading.id, heading.textContent, text, 15)
      }
      for (const item of all('li[id], tr[id]', article)) {
        const name = one('code', item)?.textContent ?? ''
        const text = all(':scope > .about, :scope > td + td', item).map((each) => each.textContent)
        add(item.id, name, text.join(' '), item.id.startsWith('error-') ? 12 : item.id.includes('.answer.') ? 0 : 8)
      }
    }
    return found
  }

  function find(query) {
    const terms = query.toLowerCase().split(/\s+/).filter(Boolean)
    if (terms.length === 0)
      return articles.map(({ id, dataset }) => ({ id, name: dataset.title, context: '', text: '', score: 0 }))
    entries ??= readEntries()
    const scored = entries.map((entry) => {
      const name = entry.name.toLowerCase().replaceAll('_', ' ')
      const names = `${name} ${entry.name.toLowerCase()}`
      const text = `${entry.context} ${entry.text}`.toLowerCase()
      let score = entry.weight
      for (const term of terms) {
        if (name === term || entry.name.toLowerCase() === term) score += 60
        else if (name.startsWith(term)) score += 40
        else if (names.includes(term)) score += 25
        else if (text.includes(term)) score += 4
        else return { ...entry, score: 0 }
      }
      return { ...entry, score }
    })
    return scored
      .filter(({ score }) => score > 0)
      .toSorted((a, b) => b.score - a.score)
      .slice(0, MAX_RESULTS)
  }

  /** The text with the terms marked, from a little before the first of them. */
  function markTerms(text, query) {
    const terms = query.toLowerCase().split(/\s+/).filter(Boolean)
    const first = Math.min(...terms.map((term) => text.toLowerCase().indexOf(term)).filter((index) => index >= 0))
    const from = Number.isFinite(first) && first > 40 ? text.lastIndexOf(' ', first - 20) + 1 : 0
    const shown = `${from > 0 ? '… ' : ''}${text.slice(from, from + 140)}`
    const pattern = new RegExp(
      `(${terms.map((term) => term.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)).join('|')})`,
      'gi',
    )
    if (terms.length === 0) return [shown]
    return shown.split(pattern).map((part, index) => (index % 2 === 1 ? element('mark', { textContent: part }) : part))
  }

  function renderResults() {
    const found = find(input.value)
    results.replaceChildren(
      ...found.map(({ id, name, context, text }, index) => {
        const item = element(
          'li',
          { id: `result-${index}` },
          element(
            'a',
            { href: `#${id}`, tabIndex: -1 },
            element('b', {}, ...markTerms(name, input.value)),
            element('span', { textContent: context === name ? '' : context }),
            element('small', {}, ...markTerms(text, input.value)),
          ),
        )
        item.setAttribute('role', 'option')
        return item
      }),
    )
    empty.textContent = found.length === 0 ? `Nothing found for “${input.value}”.` : ''
    input.setAttribute('aria-expanded', String(found.length > 0))
    setActive(found.length > 0 ? 0 : -1)
  }

  function setActive(index) {
    active = index
    for (const [each, item] of [...results.children].entries())
      item.setAttribute('aria-selected', String(each === index))
    const item = results.children[index]
    if (item) {
      input.setAttribute('aria-activedescendant', item.id)
      item.scrollIntoView({ block: 'nearest' })
    } else input.removeAttribute('aria-activedescendant')
  }

  function openSearch() {
    if (dialog.open) return
    dialog.showModal()
    input.select()
    renderResults()
  }
  one('.search-button').addEventListener('click', openSearch)
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target.closest?.('input, textarea, select')
    if ((event.key === 'k' && (event.ctrlKey || event.metaKey)) || (event.key === '/' && !isTyping)) {
      event.preventDefault()
      openSearch()
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
      one('a', results.children[active] ?? results)?.click()
    }
  })
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog || event.target.closest('a')) dialog.close()
    // The article shown already: no hashchange follows.
    if (event.target.closest('a')?.hash === location.hash) show({ movesFocus: true })
  })
  one('kbd').textContent = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘ K' : 'Ctrl K'

  // --- Trying a request ---

  /** Only in memory. */
  let credential = ''
  const credentialInputs = all('[data-credential]')
  for (const each of credentialInputs) {
    each.addEventListener('input', () => {
      credential = each.value.trim()
      for (const other of credentialInputs) if (other !== each) other.value = each.value
    })
  }
  for (const each of all('[name="Idempotency-Key"]')) each.value = randomUuid()
  for (const each of all('.address')) each.textContent = new URL(requestRoot).host

  function randomUuid() {
    const bytes = crypto.getRandomValues(new Uint8Array(16))
    bytes[6] = (bytes[6] & 15) | 64
    bytes[8] = (bytes[8] & 63) | 128
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  }

  const SHOWN_CHARACTERS = 100_000

  for (const form of all('.try form')) {
    const answer = form.nextElementSibling
    form.addEventListener('submit', async (event) => {
      event.preventDefault()
      const button = one('button', form)
      if (button.getAttribute('aria-disabled') === 'true') return
      button.setAttribute('aria-disabled', 'true')
      answer.replaceChildren(element('p', { className: 'pending', textContent: 'Sending …' }))
      try {
        answer.replaceChildren(...(await send(form)))
      } catch (error) {
        answer.replaceChildren(
          element('p', {
            className: 'failed',
            textContent: error instanceof TypeError ? `The request was not answered: ${error.message}.` : error.message,
          }),
        )
      } finally {
        button.removeAttribute('aria-disabled')
      }
    })
  }

  async function send(form) {
    const { method } = form.dataset
    const inputs = all('[data-parameter]', form).filter(({ value }) => value !== '')
    const missing = all('[data-parameter="path"]', form).find(({ value }) => value.trim() === '')
    if (missing) {
      missing.focus()
      throw new Error(`Fill in ${missing.name}.`)
    }
    const path = form.dataset.path.replaceAll(/\{(\w+)\}/g, (_, name) =>
      encodeURIComponent(one(`[name="${name}"]`, form).value.trim()),
    )
    const query = new URLSearchParams()
    const headers = credential === '' ? {} : { Authorization: `Bearer ${credential}` }
    for (const { name, value, dataset } of inputs) {
      if (dataset.parameter === 'query') query.append(name, value)
      if (dataset.parameter === 'header') headers[name] = value
    }
    const body = one('[name="body"]', form)?.value
    if (body !== undefined) headers['Content-Type'] = 'application/json'
    const url = `${requestRoot}${path}${query.size > 0 ? `?${query}` : ''}`
    const began = performance.now()
    const response = await fetch(url, { method, headers, body, credentials: 'omit', cache: 'no-store' })
    const text = await response.text()
    const duration = Math.round(performance.now() - began)
    return renderAnswer(response, text, duration)
  }

  function renderAnswer(response, text, duration) {
    let shown = text
    try {
      const value = JSON.parse(text)
      rememberIds(value)
      shown = JSON.stringify(value, null, 2)
    } catch {
      // Not JSON: shown as it is.
    }
    if (shown.length > SHOWN_CHARACTERS)
      shown = `${shown.slice(0, SHOWN_CHARACTERS)}\n… ${shown.length - SHOWN_CHARACTERS} more characters`
    const status = element(
      'p',
      { className: `outcome ${response.ok ? 'good' : 'bad'}` },
      element('strong', { textContent: `${response.status} ${response.statusText}`.trim() }),
      element('span', { textContent: `${duration} ms` }),
    )
    const first = ['x-request-id', 'ratelimit', 'ratelimit-policy', 'retry-after', 'www-authenticate', 'content-type']
    const rank = (name) => (first.includes(name) ? first.indexOf(name) : first.length)
    const sorted = [...response.headers].toSorted(([a], [b]) => rank(a) - rank(b) || a.localeCompare(b))
    const row = ([name, value]) => [element('dt', { textContent: name }), element('dd', { textContent: value })]
    const notable = sorted.filter(([name]) => rank(name) < first.length)
    const others = sorted.filter(([name]) => rank(name) === first.length)
    const pre = element('pre', { tabIndex: 0 }, element('code', {}, ...highlightJson(shown)))
    return [
      status,
      element('dl', {}, ...notable.flatMap(row)),
      element(
        'details',
        {},
        element('summary', { textContent: `${others.length} more headers` }),
        element('dl', {}, ...others.flatMap(row)),
      ),
      ...(shown === '' ? [] : [pre]),
    ]
  }

  /** Offers the ids of an answer where a path asks for one. */
  function rememberIds(value) {
    const items = Array.isArray(value?.data) ? value.data : [value]
    const list = one('#seen-ids')
    for (const { id, name } of items.filter((item) => typeof item?.id === 'string' && typeof item.name === 'string')) {
      if (!all('option', list).some((option) => option.value === id))
        list.append(element('option', { value: id, label: name }))
    }
  }

  function highlightJson(text) {
    const parts = []
    let end = 0
    for (const match of text.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|-?\b\d[\d.eE+-]*/g)) {
      const kind = match[1] ? (match[2] ? 'name' : 'string') : match[3] ? 'keyword' : 'number'
      const token = match[1] ?? match[0]
      parts.push(text.slice(end, match.index), element('span', { className: `t-${kind}`, textContent: token }))
      end = match.index + token.length
    }
    return [...parts, text.slice(end)]
  }

  show({ movesFocus: false })
}
