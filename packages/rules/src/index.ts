/**
 * Reads, checks and evaluates the rules that the built-in agent follows. Loads CEL: import it only when there are
 * rules.
 */
export { createEvaluation } from './evaluation.ts'
export { findSources } from './find-source.ts'
export { parseRules, type Rule, type Rules } from './parse-rules.ts'
export type { JsonValue } from './to-json.ts'
