import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Filled } from './fill.ts'

const toKey = (parameter: string) => parameter.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())

/** The id of what a parameter names; empty before anything is created. */
function idOf(parameter: string, filled: Filled | undefined): string {
  if (!filled) return ''
  const key = toKey(parameter)
  if (key in filled) return filled[key as keyof Filled]
  throw new Error(`A path has $${parameter}: add ${key} to what \`fill\` in test/support/fill.ts creates`)
}

/** A page of the application as tests and screenshots visit it. */
function toVisit(path: string, isPublic = false) {
  return {
    name: path.slice(1).replaceAll(/\$\w+/g, 'id').replaceAll(/\W+/g, '-') || 'overview',
    path: (filled?: Filled) =>
      // A link without a token says so, and nothing else.
      `${path.replaceAll(/\$(\w+)/g, (_, name: string) => idOf(name, filled))}${isPublic ? '#no-such-token' : ''}`,
    /** Exists only for something that `fill` creates. */
    needsFilled: path.includes('$'),
    isPublic,
  }
}

/** The pages of the router, and a drawer. The parameters of a route are named as what `fill` creates. */
function listPages() {
  const router = readFileSync(join(import.meta.dirname, '../../src/router.tsx'), 'utf8')
  const routes = [...router.matchAll(/(?:const (\w+) = )?\bpage\((\w+), '([^']+)'/g)]
  if (routes.length !== router.match(/\bpage\(/g)?.length) throw new Error('A route has another form in router.tsx.')
  const prefixes = new Map([
    ['root', ''],
    ['app', ''],
  ])
  const isPublic = new Map<string, boolean>()
  for (const [, name, parent = '', path = ''] of routes) {
    const whole = `${prefixes.get(parent)}${path}`
    if (name) prefixes.set(name, whole)
    isPublic.set(whole.replace(/\/$/, '').replace(/\/\$$/, '/no-such-page') || '/', parent === 'root')
  }
  return [
    ...Array.from(isPublic, ([path, isOfRoot]) => toVisit(path, isOfRoot)),
    toVisit('/deliveries?source_id=$source_id&open=$delivery_id'),
  ]
}

export const PAGES = listPages()
