/** HTML whose texts are escaped. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export type HtmlValue = Html | string | number | false | undefined | readonly HtmlValue[]

/** Makes HTML from a template. Texts are escaped; `Html` is not; lists are joined; false and undefined are empty. */
export function html(strings: TemplateStringsArray, ...values: HtmlValue[]): Html {
  return new Html(strings.reduce((text, part, index) => text + toText(values[index - 1]) + part))
}

/** An entry of a list: its code, and what it means. */
export function entry(code: string, about: Html, id?: string): Html {
  return html`<li ${id !== undefined && html`id="${id}"`}>
    <div class="field"><code>${code}</code></div>
    <div class="about">${about}</div>
  </li>`
}

function toText(value: HtmlValue): string {
  if (value instanceof Html) return value.text
  if (value === undefined || value === false) return ''
  if (typeof value === 'object') return value.map(toText).join('')
  return escapeHtml(String(value))
}

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? '')
}
