import { highlight } from './highlight.ts'
import { type Html, html } from './html.ts'

/** Code to show: several in a row become a choice. */
export interface Code {
  readonly label: string
  readonly language: string
  readonly text: string
}

const LABELS: Record<string, string> = {
  bash: 'curl',
  sh: 'Shell',
  ts: 'TypeScript',
  js: 'JavaScript',
  python: 'Python',
  json: 'JSON',
  yaml: 'YAML',
  text: 'Text',
}

/** Names a language for people; the first word after the language in a fence of Markdown is the label instead. */
export function labelOf(info: string): Pick<Code, 'label' | 'language'> {
  const [language = 'text', ...label] = info.split(' ')
  return { language, label: label.join(' ') || (LABELS[language] ?? language) }
}

/** A JSON value as code. */
export function jsonCode(label: string, value: unknown): Code {
  return { label, language: 'json', text: JSON.stringify(value, null, 2) }
}

/** Renders code with its labels; without a script, one after the other. */
export function renderCode(codes: readonly Code[], title = 'Example'): Html {
  return html`<div class="code" data-title="${title}">
    ${codes.map(
      ({ label, language, text }) =>
        html`<figure data-label="${label}">
          <figcaption>${label}</figcaption>
          <pre tabindex="0"><code>${highlight(text, language)}</code></pre>
        </figure>`,
    )}
  </div>`
}
