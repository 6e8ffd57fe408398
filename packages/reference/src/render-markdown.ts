import { Marked, Renderer, type Tokens } from 'marked'
import { Html, html } from './html.ts'
import { labelOf, renderCode } from './render-code.ts'

/**
 * Renders Markdown of our own: guides and descriptions. Headings get ids that begin with `idPrefix`. Fenced code blocks
 * with nothing between them become one block with a choice.
 */
export function renderMarkdown(text: string, idPrefix = ''): Html {
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text: heading }) {
        const id = `${idPrefix}${toSlug(heading)}`
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
      table(token) {
        return `<div class="table" tabindex="0">${Renderer.prototype.table.call(this, token)}</div>\n`
      },
    },
  })
  const tokens = marked.lexer(text)
  const parts: Html[] = []
  let codes: Tokens.Code[] = []
  const endCodes = (): void => {
    if (codes.length > 0)
      parts.push(renderCode(codes.map((code) => ({ ...labelOf(code.lang ?? 'text'), text: code.text }))))
    codes = []
  }
  for (const token of tokens) {
    if (token.type === 'code') codes.push(token as Tokens.Code)
    else if (token.type !== 'space') {
      endCodes()
      parts.push(new Html(marked.parser([token])))
    }
  }
  endCodes()
  return html`${parts}`
}

const INLINE = new Marked()

/** Renders a text of one line without a paragraph around it. */
export function renderInline(text: string): Html {
  return new Html(INLINE.parseInline(text, { async: false }))
}

function toSlug(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
}
