// Keeps compiled code between starts: with it, Node neither strips types nor compiles, which takes 300 ms and 24 MiB from
// the start of each service. To be loaded before everything else: `node --import @workflow-service/service-kit/compile-cache`.
// Plain JavaScript, since the first TypeScript that Node meets makes it load what strips types.
//
// Not in the temporary folder, Node's own choice: there, anybody on the machine could put code in its place. A folder that
// cannot be written costs nothing but the time.
import { enableCompileCache, flushCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

// Where NODE_COMPILE_CACHE is set, Node has opened that one, and this changes nothing.
enableCompileCache(fileURLToPath(new URL('../../../node_modules/.cache/node-compile', import.meta.url)))

// Node itself writes only when the process ends by itself: a service that is killed would never have written.
setTimeout(flushCompileCache, 10_000).unref()
