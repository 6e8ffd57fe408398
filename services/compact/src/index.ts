/**
 * Runner and dispatcher in one process, for small installations: the runner calls the dispatcher as a function. The
 * application still uses the dispatcher's internal API.
 */
export { type CompactConfig, CompactSettings, readCompactConfig } from './config.ts'
export { type CompactOverrides, startCompact } from './start-compact.ts'
