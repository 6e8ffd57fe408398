import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

/**
 * Keeps compiled code between runs, which halves the time until a command begins. Not in the temporary folder, Node's own
 * choice: there, anybody on the machine could put code in its place.
 */
export function keepCompiledCode(): void {
  enableCompileCache(fileURLToPath(new URL('../../../node_modules/.cache/node-compile', import.meta.url)))
}
