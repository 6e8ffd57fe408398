// The page works without this script as one long document. It shows one article at a time, searches, switches samples,
// and sends the requests that a reader tries.
import { showArticle, startNavigation } from './articles.js'
import { startCodeBlocks } from './code-blocks.js'
import { all } from './dom.js'
import { startSearch } from './search.js'
import { startThemeButton } from './theme-button.js'
import { startForms } from './try-request.js'

/** Puts an address in the place of the one in the samples. */
function replaceAddress(server, address) {
  for (const code of all('.code code')) {
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT)
    while (walker.nextNode()) {
      const node = /** @type {Text} */ (walker.currentNode)
      if (node.data.includes(server)) node.data = node.data.replaceAll(server, address)
    }
  }
}

// The page is also served at / and /docs/: from here on its address is that of /docs, on which its links depend.
if (!location.pathname.endsWith('/docs')) {
  const path = location.pathname.replace(/(?:docs)?\/$/, 'docs')
  history.replaceState(null, '', `${path}${location.hash}`)
}
// Requests go to this origin; samples name the address of the service.
const requestRoot = new URL('.', location.href).href.replace(/\/$/, '')
const { server = '', usesPageAddress } = document.body.dataset
if (usesPageAddress !== undefined) replaceAddress(server, requestRoot)
startNavigation()
startThemeButton()
startCodeBlocks()
startSearch()
startForms(requestRoot)
showArticle({ movesFocus: false })
