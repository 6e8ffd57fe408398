// The page works without this script as one long document. It shows one article at a time, searches, switches samples,
// and sends the requests that a reader tries.
import { showArticle, startNavigation } from './articles.js'
import { startCodeBlocks } from './code-blocks.js'
import { all, fill, markFillable } from './dom.js'
import { startSearch } from './search.js'
import { startForms } from './try-request.js'

// The page is also served at / and /docs/: from here on its address is that of /docs, on which its links depend.
if (!location.pathname.endsWith('/docs')) {
  const path = location.pathname.replace(/(?:docs)?\/$/, 'docs')
  history.replaceState(null, '', `${path}${location.hash}`)
}
// Requests go to this origin; samples name the address of the service.
const requestRoot = new URL('.', location.href).href.replace(/\/$/, '')
const { server = '', usesPageAddress } = document.body.dataset
if (usesPageAddress !== undefined) {
  markFillable('.code', server, 'server')
  fill('server', requestRoot)
}
markFillable('.code', '$WORKFLOW_API_KEY', 'credential')
markFillable('.code', 'process.env.WORKFLOW_API_KEY!', 'credential', (key) => `'${key}'`)
markFillable('.code', "{os.environ['WORKFLOW_API_KEY']}", 'credential')
for (const { name, dataset } of /** @type {HTMLInputElement[]} */ (all('input[data-example]')))
  if (dataset['example']) markFillable('[data-title="Request"]', dataset['example'], name)
startNavigation()
startCodeBlocks()
startSearch()
startForms(requestRoot)
showArticle({ movesFocus: false })
