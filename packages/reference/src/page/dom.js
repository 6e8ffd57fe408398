/**
 * The first element of a selector, which the page has.
 * @template {Element} [Found=HTMLElement]
 * @param {string} selector
 * @param {ParentNode} [within]
 * @returns {Found}
 */
export function one(selector, within = document) {
  return /** @type {Found} */ (within.querySelector(selector))
}

/**
 * @template {Element} [Found=HTMLElement]
 * @param {string} selector
 * @param {ParentNode} [within]
 * @returns {Found[]}
 */
export function all(selector, within = document) {
  return /** @type {Found[]} */ ([...within.querySelectorAll(selector)])
}

/**
 * Creates an element; the page's policy allows no HTML from text. What is no property of the element is an attribute.
 */
export function element(name, properties = {}, ...children) {
  const created = document.createElement(name)
  for (const [key, value] of Object.entries(properties)) {
    if (key in created) Object.assign(created, { [key]: value })
    else created.setAttribute(key, String(value))
  }
  created.append(...children)
  return created
}

/** Marks a text in the samples below `selector`, to be filled in. In the samples `value` becomes `as(value)`. */
export function markFillable(selector, text, name, as = (value) => value) {
  for (const code of all(`${selector} code`)) {
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT)
    /** @type {Text[]} */
    const found = []
    while (walker.nextNode()) found.push(/** @type {Text} */ (walker.currentNode))
    for (const node of found) {
      const [first = '', ...others] = node.data.split(text)
      const mark = () => {
        const span = element('span', { textContent: text })
        fillable.push({ name, span, text, as })
        return span
      }
      if (others.length > 0) node.replaceWith(first, ...others.flatMap((other) => [mark(), other]))
    }
  }
}

/** @type {{ name: string, span: HTMLElement, text: string, as: (value: string) => string }[]} */
const fillable = []

/** Fills a value into the samples; what they had before if it is empty, or has characters that need quoting. */
export function fill(name, value) {
  const isPlain = /^[\w:/.[\]-]+$/.test(value)
  for (const each of fillable) if (each.name === name) each.span.textContent = isPlain ? each.as(value) : each.text
}
