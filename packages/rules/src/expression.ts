import { type CelResult, type CelValue, isCelError, isCelList, parse, plan } from '@bufbuild/cel'
import { RULE_EXPRESSION_MAX_LENGTH } from '@workflow-service/contract'
import { meteredEnvironment } from './environment.ts'
import { during, type Evaluation } from './evaluation.ts'
import { checkExpression, type Purpose } from './check-expression.ts'
import { type JsonValue, toJson } from './to-json.ts'

/** Brackets in brackets. The parser and everything after it recurse. */
const MAX_NESTING = 24

/**
 * An expression that cannot be used, or whose evaluation failed. The message says why and, if known, at which
 * character.
 */
export class ExpressionError extends Error {
  override name = 'ExpressionError'
}

export type Expression = ReturnType<typeof compileExpression>

/**
 * Compiles an expression: checks its size, its syntax, the names of variables and functions, and the types as far as
 * they are known. Takes a few milliseconds for the largest.
 * @throws ExpressionError
 */
export function compileExpression(source: string, purpose: Purpose, { hasItem = false } = {}) {
  checkSource(source)
  const { expr, sourceInfo } = parseSource(source)
  const positionOf = (id: bigint | undefined): number | undefined => sourceInfo?.positions[String(id)]
  const nodes = checkExpression(
    expr,
    { purpose, hasItem },
    (message, id) => new ExpressionError(at(message, source, positionOf(id))),
  )
  const evaluate = plan(meteredEnvironment, expr)
  const run = <Result>(evaluation: Evaluation, read: (value: CelValue) => Result): Result =>
    during(evaluation, () => {
      const result: CelResult = evaluate(evaluation.variables as never)
      if (!isCelError(result)) return read(result)
      throw new ExpressionError(at(explain(result.message), source, positionOf(result.exprId)))
    })
  return {
    /** The number of its operations, after macros are expanded. */
    nodes,
    /** @throws ExpressionError */
    evaluate: (evaluation: Evaluation) => run(evaluation, (value) => readJson(value, evaluation)),
    /** The items of an expression that is a list, for `withItem` and as JSON. @throws ExpressionError */
    evaluateItems: (evaluation: Evaluation) =>
      run(evaluation, (list) => {
        if (!isCelList(list)) throw new ExpressionError('must be a list')
        return Array.from(list, (value) => ({ value, json: readJson(value, evaluation) }))
      }),
  }
}

function readJson(value: CelValue, { meter }: Evaluation): JsonValue {
  try {
    return toJson(value, meter)
  } catch (error) {
    throw new ExpressionError(error instanceof Error ? error.message : String(error))
  }
}

function checkSource(source: string): void {
  if (source.trim() === '') throw new ExpressionError(`is empty; an empty text is '""'`)
  if (source.length > RULE_EXPRESSION_MAX_LENGTH) {
    throw new ExpressionError(`must have at most ${RULE_EXPRESSION_MAX_LENGTH.toLocaleString('en')} characters`)
  }
  // YAML takes a date without quotes for a text, and CEL that for a difference of three numbers.
  if (/^\d{4}-\d\d-\d\d$/.test(source.trim())) {
    throw new ExpressionError(`is a subtraction; a date needs quotes of its own: '"${source.trim()}"'`)
  }
  let depth = 0
  for (const character of source) {
    if ('([{'.includes(character)) depth += 1
    else if (')]}'.includes(character)) depth -= 1
    if (depth > MAX_NESTING) throw new ExpressionError(`has brackets more than ${MAX_NESTING} levels deep`)
  }
}

function parseSource(source: string) {
  try {
    const { expr, sourceInfo } = parse(source)
    if (expr) return { expr, sourceInfo }
  } catch (error) {
    if (error instanceof RangeError) throw new ExpressionError('is nested too deeply')
    const { message, location } = error as Error & { location?: { start: { offset: number } } }
    throw new ExpressionError(
      at(describeSyntaxError(message, source, location?.start.offset), source, location?.start.offset),
    )
  }
  throw new ExpressionError('is empty')
}

/** `<input>:1:3: found & but expecting …` becomes `is no CEL expression: found &`. */
function describeSyntaxError(message: string, source: string, position = 0): string {
  const found = /found (?<found>.*?) but expecting/s.exec(message)?.groups?.['found']
  const isCut = source.split(/[([{]/).length > source.split(/[)\]}]/).length
  const isInName =
    /\b(?:fields|item)[\w. ]*$/.test(source.slice(0, position)) && /^[\p{L}\p{N}"'.]/u.test(source.slice(position))
  const hint = isCut
    ? 'a bracket is not closed: YAML ends an expression without quotes at " #", and in { } and [ ] at a comma'
    : isInName
      ? 'names such as Order ID, Größe and in are written fields["Order ID"]'
      : `a text needs quotes of its own: '"text"'`
  return `is no CEL expression${found === undefined ? '' : `: unexpected ${found}`}; ${hint}`
}

function explain(message: string): string {
  const field = /^field not found: (?<name>.*)$/s.exec(message)?.groups?.['name']
  const type = /(?:expected bool, got |_\?_:_ applied to '\()(?<type>[\w.]+)/.exec(message)?.groups?.['type']
  if (type !== undefined) return `must be true or false, but is of the type ${type}; yes(…) converts a text`
  const index = /^index (?<index>-?\d+) out of bounds/.exec(message)?.groups?.['index']
  if (index !== undefined) return `there is no item ${index}; they are counted from 0`
  return field === undefined ? message : `there is no field ${JSON.stringify(field)}; test it with has(…)`
}

function at(message: string, source: string, position: number | undefined): string {
  return position === undefined || position === 0 || position >= source.length
    ? message
    : `${message} (character ${position + 1})`
}
