import { all, element } from './dom.js'

/** Gives each block of code a choice of samples and a button that copies. A language is chosen for all blocks. */
export function startCodeBlocks() {
  const blocks = all('.code').map(createBar)
  for (const chosen of blocks) {
    chosen.select.addEventListener('change', () => {
      chosen.show()
      if (chosen.title === 'Answer') return
      for (const { labels, select, show } of blocks) {
        if (!labels.includes(chosen.select.value)) continue
        select.value = chosen.select.value
        show()
      }
    })
  }
}

function createBar(block) {
  const title = String(block.dataset['title'])
  const figures = all('figure', block)
  const labels = figures.map(({ dataset }) => String(dataset['label']))
  for (const caption of all('figcaption', block)) caption.remove()
  const options = labels.map((textContent) => element('option', { textContent }))
  const select = /** @type {HTMLSelectElement} */ (element('select', { 'aria-label': title }, ...options))
  const show = () => {
    for (const [index, figure] of figures.entries()) figure.hidden = index !== select.selectedIndex
  }
  const label = labels.length > 1 ? select : element('span', { textContent: String(labels[0]) })
  const copy = copyButton('Copy', () => figures[select.selectedIndex]?.querySelector('code')?.textContent ?? '')
  block.prepend(element('div', { className: 'code-bar' }, label, copy))
  show()
  return { title, labels, select, show }
}

/** Creates a button that copies a text; hidden in pages on plain HTTP, which have no clipboard. */
export function copyButton(textContent, textOf) {
  const hidden = navigator.clipboard === undefined
  const copy = element('button', { type: 'button', className: 'copy', textContent, hidden })
  copy.addEventListener('click', async () => {
    await navigator.clipboard.writeText(textOf())
    copy.textContent = 'Copied'
    setTimeout(() => (copy.textContent = textContent), 1500)
  })
  return copy
}
