import { type Html, html } from './html.ts'

/** Code to show: several in a row become a choice. */
export interface Code {
  readonly label: string
  readonly language: string
  readonly text: string
}

const LABELS: Record<string, string> = {
  bash: 'curl',
  ts: 'TypeScript',
  python: 'Python',
  json: 'JSON',
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

const STRING = String.raw`"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`
const NUMBER = String.raw`\b\d[\d_.]*\b`

/** For each language an expression whose named groups are the classes of its tokens. */
const LANGUAGES: Record<string, RegExp> = {
  json: /(?<name>"(?:[^"\\]|\\.)*")(?=\s*:)|(?<string>"(?:[^"\\]|\\.)*")|(?<keyword>\b(?:true|false|null)\b)|(?<number>-?\b\d[\d.eE+-]*)/g,
  bash: new RegExp(
    String.raw`(?<comment>(?:^|(?<=\s))#.*)|(?<string>${STRING})|(?<keyword>^\s*(?:curl|npm|npx|export|openssl|node|wf)\b)|(?<name>(?<=\s)--?[\w-]+)|(?<number>\$\w+)`,
    'gm',
  ),
  ts: new RegExp(
    String.raw`(?<comment>//.*)|(?<string>${STRING}|\`(?:[^\`\\]|\\.)*\`)|(?<keyword>\b(?:await|async|break|catch|const|else|export|for|from|function|if|import|let|new|of|return|throw|try|typeof|instanceof|true|false|null|undefined)\b)|(?<number>${NUMBER})`,
    'g',
  ),
  python: new RegExp(
    String.raw`(?<comment>#.*)|(?<string>[fbr]?(?:${STRING}))|(?<keyword>\b(?:and|as|def|elif|else|except|for|from|if|import|in|is|not|or|raise|return|try|while|with|True|False|None)\b)|(?<number>${NUMBER})`,
    'g',
  ),
}

/** Marks the tokens of a text in this language; a text in an unknown language is only escaped. */
function highlight(text: string, language: string): Html {
  const { [language]: expression } = LANGUAGES
  if (!expression) return html`${text}`
  const parts: Html[] = []
  let end = 0
  for (const match of text.matchAll(expression)) {
    const [kind] = Object.entries(match.groups ?? {}).find(([, token]) => token !== undefined) ?? ['']
    parts.push(html`${text.slice(end, match.index)}<span class="t-${kind}">${match[0]}</span>`)
    end = match.index + match[0].length
  }
  return html`${parts}${text.slice(end)}`
}
