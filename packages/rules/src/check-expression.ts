import { findSimilar } from '@workflow-service/contract'
import {
  type CelFunc,
  CelScalar,
  type CelType,
  type CelValue,
  celType,
  listType,
  mapType,
  type parse,
} from '@bufbuild/cel'
import { describeMismatch, environment, ITEM, LOOP, VARIABLES } from './environment.ts'

export type Expr = NonNullable<ReturnType<typeof parse>['expr']>
type Comprehension = Extract<Expr['exprKind'], { case: 'comprehensionExpr' }>['value']

/** What an expression is for: `when`, a value of `payload`, or `for_each`. */
export type Purpose = 'condition' | 'value' | 'items'

/** Operations of one expression. */
const MAX_NODES = 500

/** Loops (`map`, `filter`, `all`, `exists`, `exists_one`) in loops. */
const MAX_LOOPS = 3

const { BOOL, DYN, NULL, TYPE } = CelScalar
const NUMBERS = new Set(['int', 'uint', 'double'])
const TYPE_NAMES = ['int', 'uint', 'double', 'bool', 'string', 'bytes', 'list', 'map', 'null_type', 'type']

type Key = Extract<CelType, { kind: 'map' }>['key']
type Scope = ReadonlyMap<string, CelType>
type Fail = (message: string, id: bigint | undefined) => Error

/**
 * Checks the names and, as far as they are known, the types in a parsed expression, and makes each of its loops count
 * its iterations. Returns the number of operations. What depends on the context has no type before it is evaluated.
 */
export function checkExpression(
  expr: Expr,
  { purpose, hasItem }: { readonly purpose: Purpose; readonly hasItem: boolean },
  fail: Fail,
): number {
  const checker = new Checker(fail)
  const type = checker.check(expr, new Map(Object.entries({ ...VARIABLES, ...(hasItem ? ITEM : {}) })), 0)
  if (purpose === 'items' && !isSame(type, DYN) && type.kind !== 'list') {
    throw fail(`must be a list, but is of the type ${type.name}`, undefined)
  }
  if (purpose === 'condition' && !isAssignable(type, BOOL)) {
    throw fail(`must be true or false, but is of the type ${type.name}`, undefined)
  }
  return checker.nodes
}

class Checker {
  nodes = 0
  readonly #fail: Fail

  constructor(fail: Fail) {
    this.#fail = fail
  }

  /** The type of the expression; `dyn` if only its evaluation can say. */
  check(expr: Expr | undefined, scope: Scope, loops: number): CelType {
    this.nodes += 1
    if (this.nodes > MAX_NODES) throw this.#fail(`has more than ${MAX_NODES} operations`, undefined)
    const each = (inner: Expr | undefined): CelType => this.check(inner, scope, loops)
    const kind = expr?.exprKind
    switch (kind?.case) {
      case 'constExpr':
        return typeOfConstant(kind.value.constantKind)
      case 'identExpr':
        return this.#checkName(kind.value.name, scope, expr?.id)
      case 'selectExpr': {
        const type = this.#elementOf(each(kind.value.operand), 'field', expr?.id)
        return kind.value.testOnly ? BOOL : type
      }
      case 'listExpr':
        return listType(common(kind.value.elements.map(each)))
      case 'structExpr':
        if (kind.value.messageName !== '') throw this.#fail(`${kind.value.messageName}{…} is not available`, expr?.id)
        return mapType(
          common(
            kind.value.entries.map(({ keyKind }) => (keyKind.case === 'mapKey' ? each(keyKind.value) : DYN)),
          ) as Key,
          common(kind.value.entries.map(({ value }) => each(value))),
        )
      case 'callExpr': {
        if (kind.value.function === 'default') {
          expandDefault(expr, this.#fail)
          return each(expr)
        }
        const { function: name, target, args } = kind.value
        // A macro of CEL, so that it is no call if it is used as it should be.
        if (name === 'has') {
          const other = 'ask for another one by "Order ID" in fields'
          throw this.#fail(`has(…) takes a name after a point, such as has(fields.total); ${other}`, expr?.id)
        }
        return this.#checkCall(name, target && each(target), args.map(each), expr?.id)
      }
      case 'comprehensionExpr':
        return this.#checkLoop(kind.value, scope, loops, expr?.id)
      default:
        throw this.#fail('is no CEL expression', expr?.id)
    }
  }

  #checkName(name: string, scope: Scope, id: bigint | undefined): CelType {
    const type = scope.get(name)
    if (type) return type
    if (TYPE_NAMES.includes(name)) return TYPE
    const names = [...scope.keys()].filter((known) => !known.startsWith('@'))
    const similar = findSimilar(name, names)
    const hint = similar
      ? `did you mean ${similar}?`
      : `did you mean fields.${name}, or the text '"${name}"'? The variables are ${names.join(', ')}`
    throw this.#fail(`there is no variable ${name}; ${hint}`, id)
  }

  #checkCall(name: string, target: CelType | undefined, args: CelType[], id: bigint | undefined): CelType {
    if (name === '_?_:_') return common(args.slice(1))
    if (name === '_&&_' || name === '_||_') {
      const wrong = args.find((type) => !isAssignable(type, BOOL))
      if (wrong) throw this.#fail(describeMismatch(name, [wrong]), id)
      return BOOL
    }
    if (name === '@not_strictly_false') return BOOL
    if (name === '_[_]') return this.#elementOf(args[0] ?? DYN, 'item', id)
    const overloads = [...(environment.funcs.find(name) ?? [])]
    if (overloads.length === 0) {
      const names = [...new Set(Array.from(environment.funcs, (func) => func.name))].filter((known) =>
        /^\w+$/.test(known),
      )
      const similar = findSimilar(name, names)
      throw this.#fail(`there is no function ${name}${similar ? `; did you mean ${similar}?` : ''}`, id)
    }
    const fitting = overloads.filter((overload) => fits(overload, target, args))
    if (fitting.length > 0 && isComparableCall(name, args)) return common(fitting.map(({ result }) => result))
    // CEL writes its own functions after the value, those of rules take it in brackets.
    const isMethod = overloads.every((overload) => overload.target !== undefined)
    const isFunction = overloads.every((overload) => overload.target === undefined)
    const other = target && isFunction ? `${name}(value, …)` : !target && isMethod ? `value.${name}(…)` : undefined
    const hint = other === undefined || !/^\w+$/.test(name) ? '' : `; it is written ${other}`
    throw this.#fail(`${describeMismatch(name, target ? [target, ...args] : args)}${hint}`, id)
  }

  #elementOf(type: CelType, what: 'field' | 'item', id: bigint | undefined): CelType {
    if (type.kind === 'map') return type.value
    if (type.kind === 'list' && what === 'item') return type.element
    if (isSame(type, DYN)) return DYN
    throw this.#fail(`a value of the type ${type.name} has no ${what}s`, id)
  }

  #checkLoop(loop: Comprehension, scope: Scope, loops: number, id: bigint | undefined): CelType {
    if (loops === MAX_LOOPS) throw this.#fail(`has more than ${MAX_LOOPS} loops inside of each other`, id)
    const range = this.check(loop.iterRange, scope, loops)
    if (!isSame(range, DYN) && range.kind !== 'list' && range.kind !== 'map') {
      throw this.#fail(`a value of the type ${range.name} has no items`, id)
    }
    const item = range.kind === 'list' ? range.element : range.kind === 'map' ? range.key : DYN
    const inner = new Map([...scope, [loop.iterVar, item], [loop.accuVar, this.check(loop.accuInit, scope, loops)]])
    const nodesBefore = this.nodes
    this.check(loop.loopCondition, inner, loops + 1)
    this.check(loop.loopStep, inner, loops + 1)
    loop.iterRange = chargeLoop(loop.iterRange, this.nodes - nodesBefore)
    return this.check(loop.result, inner, loops + 1)
  }
}

/**
 * Replaces `default(fields.a.b, value)` by `has(fields.a) && has(fields.a.b) ? fields.a.b : value`: an argument that
 * fails would fail the call before a function could be asked. Any other failure than a missing field remains one.
 */
function expandDefault(expr: Expr | undefined, fail: Fail): void {
  const call = expr?.exprKind.case === 'callExpr' ? expr.exprKind.value : undefined
  const [wanted, other, ...more] = call?.args ?? []
  const tests = wanted && testsOf(wanted)
  if (!expr || !call || call.target || !wanted || !other || more.length > 0 || !tests?.[0]) {
    throw fail(
      'default(…) takes a field and the value that replaces it, such as default(fields.discount, 0.0)',
      expr?.id,
    )
  }
  const test = tests.reduce((left, right) => toCall(expr.id, '_&&_', [left, right]))
  expr.exprKind = toCall(expr.id, '_?_:_', [test, wanted, other]).exprKind
}

/** `has(…)` for each field on the way, the outermost first; undefined if the expression is no field of a variable. */
function testsOf({ id, exprKind: kind }: Expr): Expr[] | undefined {
  if (kind.case === 'identExpr') return []
  const [map, key] = kind.case === 'callExpr' && kind.value.function === '_[_]' ? kind.value.args : []
  const constant = key?.exprKind.case === 'constExpr' ? key.exprKind.value.constantKind : undefined
  const operand = kind.case === 'selectExpr' ? kind.value.operand : map
  const field =
    kind.case === 'selectExpr' ? kind.value.field : constant?.case === 'stringValue' ? constant.value : undefined
  const before = operand && testsOf(operand)
  if (!before || field === undefined) return undefined
  const value = { $typeName: 'cel.expr.Expr.Select', operand, field, testOnly: true }
  return [...before, { $typeName: 'cel.expr.Expr', id, exprKind: { case: 'selectExpr', value } } as Expr]
}

function toCall(id: bigint, name: string, args: readonly Expr[]): Expr {
  const value = { $typeName: 'cel.expr.Expr.Call', function: name, args }
  return { $typeName: 'cel.expr.Expr', id, exprKind: { case: 'callExpr', value } } as Expr
}

/** A call that charges for the loop over the range and returns the range. */
function chargeLoop(range: Expr | undefined, nodes: number): Expr {
  const constant = { $typeName: 'cel.expr.Constant', constantKind: { case: 'int64Value', value: BigInt(nodes) } }
  const count = { $typeName: 'cel.expr.Expr', id: 0n, exprKind: { case: 'constExpr', value: constant } }
  return toCall(range?.id ?? 0n, LOOP, [range, count] as Expr[])
}

function typeOfConstant(constant: { case?: string; value?: unknown }): CelType {
  if (constant.case === 'nullValue') return NULL
  if (constant.case === 'uint64Value') return CelScalar.UINT
  return celType(constant.value as CelValue)
}

function fits(func: CelFunc, target: CelType | undefined, args: readonly CelType[]): boolean {
  if ((func.target === undefined) !== (target === undefined) || func.arguments.length !== args.length) return false
  if (func.target && target && !isAssignable(target, func.target)) return false
  return func.arguments.every((type, index) => isAssignable(args[index] ?? DYN, type))
}

/**
 * Whether a comparison is of values that can be equal, as the types of CEL have it: `yes(fields.vip) == "yes"` is false
 * and `!=` is true for every context. True for other calls.
 */
function isComparableCall(name: string, [left = DYN, right = DYN]: readonly CelType[]): boolean {
  if (name === '@in' && right.kind === 'list') return isComparable(left, right.element)
  return (name !== '_==_' && name !== '_!=_') || isComparable(left, right)
}

/** Any value can be compared with null: `text(fields.note) != null` is always true, but does what it says. */
function isComparable(left: CelType, right: CelType): boolean {
  if ([left, right].some((type) => isSame(type, DYN) || isSame(type, NULL))) return true
  return isSame(left, right) || [left, right].every(({ name }) => NUMBERS.has(name))
}

function isAssignable(from: CelType, to: CelType): boolean {
  return isSame(from, DYN) || isSame(to, DYN) || isSame(from, to)
}

function isSame(left: CelType, right: CelType): boolean {
  return left.kind === right.kind && left.name === right.name
}

/** The type of all of them; `dyn` if they differ, or there are none, and likewise for what is in lists and maps. */
function common(types: readonly CelType[]): CelType {
  return types.length === 0 ? DYN : types.reduce(commonOf)
}

function commonOf(left: CelType, right: CelType): CelType {
  if (left.kind === 'list' && right.kind === 'list') return listType(commonOf(left.element, right.element))
  if (left.kind === 'map' && right.kind === 'map') {
    return mapType(commonOf(left.key, right.key) as Key, commonOf(left.value, right.value))
  }
  return isSame(left, right) ? left : DYN
}
