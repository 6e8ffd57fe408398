import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const read = (name: string): string => readFileSync(join(import.meta.dirname, 'page', name), 'utf8')
const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** The modules of the script, each after those that it imports. */
const MODULES = ['dom', 'articles', 'code-blocks', 'search', 'try-request', 'main']

/**
 * Joins the modules to one script without a bundler: their imports name only each other, and no name is declared twice.
 * Comments that stand alone are left out.
 */
function joinModules(): string {
  const texts = MODULES.map((name) =>
    read(`${name}.js`)
      .replaceAll(/^import .*\n/gm, '')
      .replaceAll(/^export /gm, '')
      .replaceAll(/^ *(?:\/\/.*|\/\*\*[^]*?\*\/)\n/gm, ''),
  )
  return `'use strict'\n{\n${texts.join('')}}\n`
}

/** The style and the script of the page, which are inside of it: one file, and a policy that allows only these. */
export const STYLE = read('reference.css')
export const SCRIPT = joinModules()

/** The page loads nothing, sends only to its own origin, runs only its own script, and cannot be framed. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `script-src ${hashOf(SCRIPT)}`,
  `style-src ${hashOf(STYLE)}`,
  'img-src data:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')
