import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const read = (name: string): string => readFileSync(join(import.meta.dirname, 'page', name), 'utf8')
const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** The style and the two scripts of the page, which are inside of it: one file, and a policy that allows only these. */
export const STYLE = read('reference.css')
/** Sets the theme before anything is drawn. */
export const THEME_SCRIPT = read('theme.js')
export const SCRIPT = read('reference.js')

/** The page loads nothing, sends only to its own origin, runs only its own scripts, and cannot be framed. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `script-src ${hashOf(THEME_SCRIPT)} ${hashOf(SCRIPT)}`,
  `style-src ${hashOf(STYLE)}`,
  'img-src data:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')
