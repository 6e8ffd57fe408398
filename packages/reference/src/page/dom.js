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

/** What the browser remembers for the page, if it does. */
export function remembered(name) {
  try {
    return localStorage.getItem(name)
  } catch {
    return null
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(name, value)
  } catch {
    // The browser keeps nothing for this page.
  }
}
