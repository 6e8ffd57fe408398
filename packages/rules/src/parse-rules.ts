import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  findRulesShapeErrors,
  findSimilar,
  PAYLOAD_MAX_DEPTH,
  RuleDelivery,
  RULES_MAX_BYTES,
  type RulesFile,
} from '@workflow-service/contract'
import {
  Composer,
  type CST,
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  Parser,
  type Scalar,
  visit,
} from 'yaml'
import { type Evaluation, withItem } from './evaluation.ts'
import type { Purpose } from './check-expression.ts'
import { isRoundedDecimal } from './convert-value.ts'
import { compileExpression, type Expression, ExpressionError } from './expression.ts'
import { RuleError, type RulePlace, type Step } from './rule-place.ts'
import type { JsonValue } from './to-json.ts'

/** Aliases of a file: the library looks for the anchor of each among all. */
const MAX_ALIASES = 500

/** A file with what its aliases repeat ("billion laughs"), in characters; each value counts as so many more. */
const MAX_WEIGHT = 256 * 1024
const VALUE_WEIGHT = 32

/** Errors of YAML that an expression without quotes leads to, such as `!yes(fields.vip)` or `has(fields.a) ? 1 : 2`. */
const OF_EXPRESSIONS: ReadonlySet<string> = new Set([
  'BAD_DQ_ESCAPE',
  'BAD_SCALAR_START',
  'BLOCK_AS_IMPLICIT_KEY',
  'BLOCK_IN_FLOW',
  'MISSING_CHAR',
  'TAG_RESOLVE_FAILED',
  'UNEXPECTED_TOKEN',
])

/** Operations of all expressions of a file, and values in its payloads. */
const MAX_NODES = 5_000

/** Tokens of YAML, white space included, and brackets in brackets. The parser takes up to 20 µs for a token. */
const MAX_TOKENS = 10_000
const MAX_NESTING = 64

const DELIVERY_FIELDS = Object.keys(RuleDelivery.properties)

/** Errors that are reported for a file. */
const MAX_ERRORS = 20

/** Time after which other work of the process gets its turn. A request to the application takes a few turns. */
const TURN_MS = 2

/** Weight of the texts whose results are kept: a few of the largest, or a hundred ordinary ones. */
const MAX_KNOWN_WEIGHT = 192 * 1024
const weightOf = (text: string): number => 1_024 + text.length

/** The deliveries of a `rules.yaml`, compiled. */
export interface Rules {
  readonly deliveries: readonly Rule[]
}

export interface Rule {
  /** The name of the webhook source as the file has it. */
  readonly to: string
  /** One evaluation, or one for each item of `for_each`, with the item as JSON. @throws RuleError */
  expand(evaluation: Evaluation): readonly { readonly evaluation: Evaluation; readonly item?: JsonValue }[]
  /** Evaluates the condition. @throws RuleError */
  applies(evaluation: Evaluation): boolean
  /** The payload as the file has it: texts are expressions. */
  readonly payload: Readonly<Record<string, unknown>>
  /** Evaluates the payload's values; empty if the file gives none. @throws RuleError */
  readonly values: (this: void, evaluation: Evaluation) => { [name: string]: JsonValue }
  /** An error at a key of the delivery, or at the delivery itself. */
  readonly errorAt: (this: void, steps: readonly Step[], reason: string) => RuleError
}

/** The rules, or every error of the file. */
export type ParsedRules = { readonly rules: Rules } | { readonly errors: readonly RuleError[] }

/** Work in pieces of 2 ms or little more. */
type Turns = ReturnType<typeof createTurns>

function createTurns(waitForTurn: () => Promise<void>) {
  let beganMs = performance.now()
  return {
    isOver: (): boolean => performance.now() - beganMs > TURN_MS,
    async next(): Promise<void> {
      await waitForTurn()
      beganMs = performance.now()
    },
  }
}

/** What `parseRules` finds in the latest texts, the least recently used first. */
const known = new Map<string, Promise<ParsedRules>>()
let knownWeight = 0

/**
 * Parses and compiles a `rules.yaml` (docs/rules.md, "The file"). A file may take 40 ms, one of the
 * latest none.
 * @param waitForTurn Awaited every 2 ms, so that other work of the process goes on; that of the first call for a text.
 */
export async function parseRules(
  text: string,
  waitForTurn: () => Promise<void> = () => nextTurn(),
): Promise<ParsedRules> {
  if (Buffer.byteLength(text) > RULES_MAX_BYTES) return refuse(`is larger than ${RULES_MAX_BYTES / 1024} KiB`)
  const parsed = known.get(text) ?? parseText(text, createTurns(waitForTurn))
  forget(text)
  known.set(text, parsed)
  knownWeight += weightOf(text)
  for (const oldest of known.keys()) {
    if (knownWeight <= MAX_KNOWN_WEIGHT) break
    forget(oldest)
  }
  try {
    return await parsed
  } catch (error) {
    forget(text)
    throw error
  }
}

function forget(text: string): void {
  if (known.delete(text)) knownWeight -= weightOf(text)
}

async function parseText(text: string, turns: Turns): Promise<ParsedRules> {
  const file = await readYaml(text, turns)
  if ('errors' in file) return { errors: file.errors }
  const compiler = new RulesCompiler(file.placeOf)
  const deliveries = file.value.deliveries.map((delivery, index) => compiler.compile(delivery, ['deliveries', index]))
  for (const job of compiler.jobs) {
    if (turns.isOver()) await turns.next()
    job()
  }
  const { errors } = compiler
  return errors.length > 0 ? { errors: errors.slice(0, MAX_ERRORS) } : { rules: { deliveries } }
}

type PlaceOf = (steps: readonly Step[]) => RulePlace

async function readYaml(
  text: string,
  turns: Turns,
): Promise<{ value: RulesFile; placeOf: PlaceOf } | { errors: RuleError[] }> {
  const lexemes = readLexemes(text)
  if (typeof lexemes === 'string') return refuse(lexemes)
  const lines = new LineCounter()
  const [document, second] = await parseDocuments(lexemes, lines, turns)
  await turns.next()
  if (!document) return refuse('is empty; it begins with "deliveries:"')
  const lineAt = (position: number): number => lines.linePos(position).line
  const problems = [...document.errors, ...document.warnings].slice(0, MAX_ERRORS)
  const syntaxErrors = problems.map(({ code, pos, message }) => {
    const reason = code === 'RESOURCE_EXHAUSTION' ? 'nested too deeply' : message
    const hint = OF_EXPRESSIONS.has(code) ? `; quote an expression as a whole: '"Order " + text(fields.id)'` : ''
    return new RuleError({ steps: [], line: lineAt(pos[0]) }, `is no valid YAML: ${reason}${hint}`)
  })
  if (syntaxErrors.length > 0) return { errors: syntaxErrors }
  if (second) return refuse('has several documents (---)', lineAt(second.range[0]))
  const repeated = findRepeatedKeys(document)
    .slice(0, MAX_ERRORS)
    .map(({ key, position }) => {
      return new RuleError(
        { steps: [], line: lineAt(position) },
        `has the key ${JSON.stringify(key)} twice in one object`,
      )
    })
  if (repeated.length > 0) return { errors: repeated }
  visit(document, {
    Scalar(_key, scalar) {
      if (isRounded(scalar)) scalar.value = NaN
      else if (typeof scalar.value === 'bigint') scalar.value = Number(scalar.value)
    },
  })
  const placeOf: PlaceOf = (steps) => ({ steps, line: findLine(document, lines, steps) })
  try {
    if (weigh(document.contents, new Map()) > MAX_WEIGHT) return refuse('repeats too much with its aliases')
    const value: unknown = document.toJS({
      // The library's own limit compares each alias in what is repeated with the whole file.
      maxAliasCount: -1,
      // `when: true`, as drafts propose: a boolean of YAML is the same expression.
      reviver: (key, item: unknown) => (key === 'when' && typeof item === 'boolean' ? String(item) : item),
    })
    await turns.next()
    const errors = findRulesShapeErrors(value)
      .slice(0, MAX_ERRORS)
      .map(({ path, code, message }) => {
        const steps = path.match(/[^.[\]]+/g)?.map((step) => (/^\d+$/.test(step) ? Number(step) : step)) ?? []
        return new RuleError(placeOf(steps), describeShapeError(code, steps) ?? message)
      })
    return errors.length > 0 ? { errors } : { value: value as RulesFile, placeOf }
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
}

/** Whether JSON does not keep the digits of a number. */
function isRounded({ value, source = '' }: Scalar): boolean {
  if (typeof value === 'bigint') return !Number.isSafeInteger(Number(value))
  return typeof value === 'number' && isRoundedDecimal(source)
}

/** In the words of YAML, and with the fields that exist. Undefined if the error's own message says it all. */
function describeShapeError(code: string, steps: readonly Step[]): string | undefined {
  if (code === 'extra_forbidden') {
    // The file has only one field, so that any other is meant to be it.
    if (steps.length === 1) return 'is not a known field; did you mean deliveries?'
    const similar = findSimilar(String(steps.at(-1)), DELIVERY_FIELDS)
    const hint = similar === undefined ? '' : `did you mean ${similar}? `
    return `is not a known field; ${hint}a delivery has ${DELIVERY_FIELDS.join(', ')}`
  }
  if (code !== 'model_attributes_type' && code !== 'dict_type') return undefined
  if (steps.length === 0) return 'must begin with "deliveries:"'
  return `must have fields, such as "${steps.at(-1) === 'payload' ? 'total: number(fields.total)' : 'to: Order intake'}"`
}

function refuse(reason: string, line?: number): { errors: RuleError[] } {
  return { errors: [new RuleError({ steps: [], line }, reason)] }
}

/** The smallest parts of the text, or the limit that it exceeds, before it is parsed. */
function readLexemes(text: string): string[] | string {
  const lexemes: string[] = []
  let [depth, aliases] = [0, 0]
  for (const lexeme of new Lexer().lex(text)) {
    lexemes.push(lexeme)
    if (lexeme.startsWith('*')) aliases += 1
    else if (lexeme === '[' || lexeme === '{') depth += 1
    else if (lexeme === ']' || lexeme === '}') depth -= 1
    if (lexemes.length > MAX_TOKENS) return `has more than ${MAX_TOKENS.toLocaleString('en')} words and signs of YAML`
    if (depth > MAX_NESTING) return `has brackets more than ${MAX_NESTING} levels deep`
    if (aliases > MAX_ALIASES) return `has more than ${MAX_ALIASES} aliases`
  }
  return lexemes
}

/** Does what `parseAllDocuments` does, in turns. Stops after the second document. */
async function parseDocuments(lexemes: readonly string[], lines: LineCounter, turns: Turns) {
  const parser = new Parser(lines.addNewLine)
  lines.addNewLine(0)
  const composer = new Composer({
    stringKeys: true,
    resolveKnownTags: false,
    intAsBigInt: true,
    logLevel: 'silent',
    // Compares each key with each other one; findRepeatedKeys takes linear time.
    uniqueKeys: false,
  })
  const documents: Document.Parsed[] = []
  // Each token can be an error, and stack traces take most of its time.
  const compose = (tokens: Iterable<CST.Token>): void => {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    try {
      for (const token of tokens) documents.push(...composer.next(token))
    } finally {
      Error.stackTraceLimit = stackTraceLimit
    }
  }
  for (const lexeme of lexemes) {
    compose(parser.next(lexeme))
    if (turns.isOver()) await turns.next()
    if (documents.length > 1) return documents
  }
  compose(parser.end())
  return [...documents, ...composer.end()]
}

/** Weighs a node with what its aliases repeat, by `anchors`; infinite if one of them repeats what it is in. */
function weigh(node: unknown, anchors: Map<string, number>): number {
  if (isAlias(node)) return anchors.get(node.source) ?? 0
  if (!isNode(node)) return 0
  const { anchor } = node as { anchor?: string }
  if (anchor !== undefined) anchors.set(anchor, Infinity)
  let weight = VALUE_WEIGHT + (isScalar(node) ? (node.source?.length ?? 0) : 0)
  for (const item of isCollection(node) ? node.items : []) {
    for (const part of isPair(item) ? [item.key, item.value] : [item]) weight += weigh(part, anchors)
  }
  if (anchor !== undefined) anchors.set(anchor, weight)
  return weight
}

function findRepeatedKeys(document: Document.Parsed): { key: string; position: number }[] {
  const repeated: { key: string; position: number }[] = []
  visit(document, {
    Map(_key, { items }) {
      const keys = new Set<string>()
      for (const { key } of items) {
        if (!isScalar(key)) continue
        const name = String(key.value)
        if (keys.has(name)) repeated.push({ key: name, position: key.range?.[0] ?? 0 })
        keys.add(name)
      }
    },
  })
  return repeated
}

/** The line of the key or of the item of a list, or else of its nearest parent. */
function findLine({ contents }: Document.Parsed, lines: LineCounter, steps: readonly Step[]): number | undefined {
  let parent: unknown = contents
  let start = contents?.range?.[0]
  for (const step of steps) {
    if (isAlias(parent)) break
    const pair = isMap(parent) && parent.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))
    const child: unknown = isSeq(parent) ? parent.items[Number(step)] : pair && pair.value
    const node = pair ? pair.key : child
    if (!isNode(node) || !node.range) break
    start = node.range[0]
    parent = child
  }
  return start === undefined ? undefined : lines.linePos(start).line
}

class RulesCompiler {
  readonly errors: RuleError[] = []
  /** Compile the expressions and report errors, in the order of the file. Rules can be used when all are done. */
  readonly jobs: (() => void)[] = []
  readonly #placeOf: PlaceOf
  #nodes = 0
  /** Whether the expressions are those of a delivery for each item of a list. */
  #hasItem = false

  constructor(placeOf: PlaceOf) {
    this.#placeOf = placeOf
  }

  compile({ to, when, for_each: list, payload = {} }: RulesFile['deliveries'][number], steps: readonly Step[]): Rule {
    const placeOf = this.#placeOf
    this.#hasItem = false
    const items = list === undefined ? undefined : this.#compileExpression(list, 'items', [...steps, 'for_each'])
    this.#hasItem = list !== undefined
    const condition = when === undefined ? undefined : this.#compileExpression(when, 'condition', [...steps, 'when'])
    const values = this.#compileObject(payload, [...steps, 'payload'])
    return {
      to,
      payload,
      expand: (evaluation) =>
        items
          ?.evaluateItems(evaluation)
          .map(({ value, json }) => ({ evaluation: withItem(evaluation, value), item: json })) ?? [{ evaluation }],
      applies(evaluation) {
        const result = condition ? condition.evaluate(evaluation) : true
        if (typeof result === 'boolean') return result
        throw new RuleError(
          placeOf([...steps, 'when']),
          `must be true or false, but is ${JSON.stringify(result).slice(0, 100)}${typeof result === 'string' ? '; yes(…) converts a text' : ''}`,
        )
      },
      values,
      errorAt: (inner, reason) => new RuleError(placeOf([...steps, ...inner]), reason),
    }
  }

  #compileValue(value: unknown, steps: readonly Step[]): (evaluation: Evaluation) => JsonValue {
    this.#addNodes(1)
    if (typeof value === 'string') return this.#compileExpression(value, 'value', steps).evaluate
    if (typeof value === 'object' && value !== null) {
      // The file's levels down to the delivery's payload are not part of the payload.
      if (steps.length - 2 > PAYLOAD_MAX_DEPTH) return this.#refuse(steps, `has more than ${PAYLOAD_MAX_DEPTH} levels`)
      if (!Array.isArray(value)) return this.#compileObject(value as Record<string, unknown>, steps)
      const items = value.map((item, index) => this.#compileValue(item, [...steps, index]))
      return (evaluation) => items.map((item) => item(evaluation))
    }
    if (typeof value === 'number' && !Number.isFinite(value)) {
      return this.#refuse(steps, `is a number that JSON cannot keep; write fewer digits, or a text such as '"12345"'`)
    }
    return () => value as JsonValue
  }

  #compileObject(object: Record<string, unknown>, steps: readonly Step[]): Rule['values'] {
    // A file that declares YAML 1.1 can have a time, bytes, a set or an ordered map in place of an object.
    if (Object.getPrototypeOf(object) !== Object.prototype) {
      this.#refuse(steps, `is no value of JSON; write a text such as '"2026-01-31"'`)
      return () => ({})
    }
    const fields = Object.entries(object).map(
      ([name, value]) => [name, this.#compileValue(value, [...steps, name])] as const,
    )
    return (evaluation) => Object.fromEntries(fields.map(([name, evaluate]) => [name, evaluate(evaluation)]))
  }

  /** The expression, whose errors have their place. */
  #compileExpression(source: string, purpose: Purpose, steps: readonly Step[]): Omit<Expression, 'nodes'> {
    const hasItem = this.#hasItem
    let expression: Expression | undefined
    this.jobs.push(() => {
      if (this.#nodes > MAX_NODES) return
      try {
        expression = compileExpression(source, purpose, { hasItem })
        this.#addNodes(expression.nodes)
      } catch (error) {
        if (!(error instanceof ExpressionError)) throw error
        this.#report(steps, error.message)
      }
    })
    const withPlace = <Result>(work: () => Result): Result => {
      try {
        return work()
      } catch (error) {
        throw error instanceof ExpressionError ? new RuleError(this.#placeOf(steps), error.message) : error
      }
    }
    return {
      evaluate: (evaluation) => withPlace(() => expression?.evaluate(evaluation) ?? null),
      evaluateItems: (evaluation) => withPlace(() => expression?.evaluateItems(evaluation) ?? []),
    }
  }

  #addNodes(count: number): void {
    const wasTooMany = this.#nodes > MAX_NODES
    this.#nodes += count
    if (this.#nodes > MAX_NODES && !wasTooMany) {
      this.#report([], `has more than ${MAX_NODES.toLocaleString('en')} values and operations`)
    }
  }

  #refuse(steps: readonly Step[], reason: string): () => null {
    this.jobs.push(() => this.#report(steps, reason))
    return () => null
  }

  #report(steps: readonly Step[], reason: string): void {
    this.errors.push(new RuleError(this.#placeOf(steps), reason))
  }
}
