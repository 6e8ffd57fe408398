import { all, one } from './dom.js'

/** All articles of the page: guides, operations, webhooks and errors. */
export const articles = all('article')
const root = document.documentElement
const pageTitle = document.title

/** The element that the address names. */
function targetOfHash() {
  return document.querySelector(`[id="${CSS.escape(location.hash.slice(1))}"]`)
}

/** Shows the article of the address, or the first one, and hides the others. */
export function showArticle({ movesFocus }) {
  // The link that skips the navigation leads to the article that is shown.
  if (location.hash === '#content' && articles.some((each) => each.hidden)) return
  const target = targetOfHash()
  const article = /** @type {HTMLElement} */ (target?.closest('article') ?? articles[0])
  const unknown = one('#unknown')
  unknown.hidden = target !== null || location.hash.length < 2
  unknown.textContent = `This page has nothing named ${location.hash}: it was renamed or removed. Search for it.`
  for (const each of articles) {
    if (each === article) each.removeAttribute('hidden')
    else each.setAttribute('hidden', 'until-found')
  }
  document.title = `${article.dataset['title']} · ${pageTitle}`
  for (const link of /** @type {HTMLAnchorElement[]} */ (all('#nav a'))) {
    if (link.hash === `#${article.id}`) link.setAttribute('aria-current', 'page')
    else link.removeAttribute('aria-current')
  }
  document.querySelector('#nav a[aria-current]')?.scrollIntoView({ block: 'nearest' })
  setMenu(false)
  for (let box = target?.parentElement; box; box = box.parentElement)
    if (box instanceof HTMLDetailsElement) box.open = true
  // Tab goes on from a part, where the browser has moved: a focused heading would lead back to the top.
  if (target && target !== article) return target.scrollIntoView()
  scrollTo(0, 0)
  if (movesFocus) one('h1', article).focus({ preventScroll: true })
}

function setMenu(isOpen) {
  one('.menu').setAttribute('aria-expanded', String(isOpen))
  root.classList.toggle('menu-open', isOpen)
}

export function startNavigation() {
  // Find-in-page also searches hidden articles, and shows the one with the match.
  for (const article of articles) {
    article.addEventListener('beforematch', () => {
      // Links into a hidden article also fire this; their hash is set already.
      if (!article.contains(targetOfHash())) location.hash = article.id
    })
  }
  addEventListener('hashchange', () => showArticle({ movesFocus: true }))
  const menu = one('.menu')
  menu.addEventListener('click', () => {
    setMenu(menu.getAttribute('aria-expanded') === 'false')
    if (root.classList.contains('menu-open')) one('#nav a').focus()
  })
  // On a phone the menu covers the content, to which Tab leads from its last link.
  one('#content').addEventListener('focusin', () => setMenu(false))
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && root.classList.contains('menu-open')) {
      setMenu(false)
      menu.focus()
    }
  })
}
