import {
  type CelEnv,
  celEnv,
  celError,
  type CelList,
  celList,
  CelScalar,
  type CelType,
  celType,
  type CelValue,
  isCelError,
  isCelList,
  isCelMap,
  listType,
  mapType,
  objectType,
} from '@bufbuild/cel'
import { TimestampSchema } from '@bufbuild/protobuf/wkt'
import { currentMeter } from './evaluation.ts'
import { compilePattern, FUNCTIONS } from './functions.ts'
import type { Meter } from './meter.ts'

type FuncGroup = NonNullable<ReturnType<CelEnv['funcs']['find']>>

/** The function that every loop calls with its range and the number of nodes in its body, before it begins. */
export const LOOP = '@loop'

/**
 * Pattern of `matches` and `capture`: its length, times the counts of its repetitions. Compiling and matching take time
 * in proportion.
 */
const PATTERN_MAX_WEIGHT = 300

const { DYN, STRING } = CelScalar
const TEXTS = mapType(STRING, STRING)

/** The variables of expressions and their types. */
export const VARIABLES = {
  fields: mapType(STRING, DYN),
  items: listType(DYN),
  context: STRING,
  input_message: STRING,
  workflow: TEXTS,
  now: objectType(TimestampSchema),
} as const

/** The variable of deliveries with `for_each`: the item of the list. */
export const ITEM = { item: DYN } as const

/** The items of lists that were added up. Without it, a list from a macro is a chain of one list per item. */
const itemsOfLists = new WeakMap<object, CelValue[]>()

function addLists(left: CelList, right: CelList): CelList {
  currentMeter().charge(left.size + right.size)
  const items = (itemsOfLists.get(left) ?? Array.from(left)).concat(Array.from(right))
  const list = celList(items)
  itemsOfLists.set(list, items)
  return list
}

function weighPattern(pattern: string): number {
  const counts = Array.from(pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g), ([, least, most]) => Number(most || least))
  return counts.reduce((weight, count) => weight * Math.max(count, 1), pattern.length)
}

/** The functions of CEL, and those of rules. */
export const environment = celEnv({
  variables: { ...VARIABLES, ...ITEM },
  funcs: FUNCTIONS,
  re2: { compile: compilePattern },
})

/**
 * The same, where every call and every loop counts as work of the evaluation that is under way. A wrapper around the
 * functions and not an error in one of them, because operators such as `||` absorb errors.
 */
export const meteredEnvironment = Object.create(environment, {
  funcs: { value: { find: (name: string) => (name === LOOP ? LOOP_GROUP : meterGroup(environment.funcs.find(name))) } },
}) as CelEnv

const LOOP_GROUP: FuncGroup = {
  name: LOOP,
  *[Symbol.iterator]() {},
  call(_id, _target, [range, nodes]) {
    const size = isCelList(range) || isCelMap(range) ? range.size : 0
    // An iteration may end in an error, which takes as long as 20 nodes.
    currentMeter().charge(size * (Number(nodes) + 20) * 10)
    return range
  },
}

function meterGroup(group: FuncGroup | undefined): FuncGroup | undefined {
  return (
    group && {
      name: group.name,
      [Symbol.iterator]: () => group[Symbol.iterator](),
      call(id, target, args) {
        const values = target === undefined ? args : [target, ...args]
        chargeCall(currentMeter(), group.name, values)
        // Before the overloads are tried: each of them makes a type for each list, which takes most of a loop's time.
        const [left, right] = args
        if (group.name === '_+_' && isCelList(left) && isCelList(right)) return addLists(left, right)
        const result = group.call(id, target, args) ?? celError(describeMismatch(group.name, values.map(celType)), id)
        // Thrown, because `||`, `&&` and loops absorb errors that are returned: what is open ends the evaluation.
        if (group.name === 'todo' && isCelError(result)) throw result
        return result
      },
    }
  )
}

/** Charges before the call, by the sizes of its arguments. */
function chargeCall(meter: Meter, name: string, values: readonly CelValue[]): void {
  meter.charge(20)
  // A time in a zone takes 100 µs.
  if (name.startsWith('get')) meter.charge(values.length > 1 ? 10_000 : 500)
  if (name === 'string') meter.charge(1_000)
  if (DEEP.has(name)) for (const value of values) meter.chargeDeep(value)
  const lengths = values.map((value) => (typeof value === 'string' ? value.length : 0))
  const length = lengths.reduce((sum, each) => sum + each, 0)
  if (name === '_+_') meter.chargeText(length)
  else meter.charge(length * (name === 'contains' && length > LONG_TEXT ? 1 / 2 : (STEPS_PER_CHARACTER[name] ?? 1 / 8)))
  const [text, pattern] = values
  if (SEARCHES.has(name) && typeof text === 'string' && typeof pattern === 'string') chargeSearch(meter, text, pattern)
  // A character beyond Latin-1 costs V8 at most 15 ns, and one in it 2 ns.
  const changesCase = name === 'lower' || name === 'upper'
  if (changesCase && typeof text === 'string' && /[^\0-\xff]/.test(text)) meter.charge(length / 2)
  if ((name === 'matches' || name === 'capture') && typeof text === 'string' && typeof pattern === 'string') {
    const weight = weighPattern(pattern)
    if (weight > PATTERN_MAX_WEIGHT) {
      throw new Error(`the pattern is too large: its length times its repetitions is more than ${PATTERN_MAX_WEIGHT}`)
    }
    meter.charge((text.length + 100) * weight * 1.6)
  }
}

/** Longer than a context with a word that is looked for, of which rules may look for hundreds. */
const LONG_TEXT = 10_500

/** Functions that look for the second text in the first one. */
const SEARCHES = new Set(['contains', 'split', 'replace'])

/**
 * V8 looks for a text of this length in linear time. It compares a longer one from its end, and at worst all of it
 * wherever the text has its last 250 characters; about 32 such comparisons take the time of a step.
 */
const LINEAR_LENGTH = 250

/** Finds these last characters first, which is charged, too. A long text that another has once costs little. */
function chargeSearch(meter: Meter, text: string, pattern: string): void {
  if (pattern.length <= LINEAR_LENGTH) return
  meter.charge(text.length / 2)
  const end = pattern.slice(-LINEAR_LENGTH)
  for (let at = text.indexOf(end); at !== -1; at = text.indexOf(end, at + 1)) {
    meter.charge((pattern.length + 2 * LINEAR_LENGTH) / 32)
  }
}

/** Steps for each character in functions that walk through a text; others take an eighth. */
const STEPS_PER_CHARACTER: Readonly<Record<string, number>> = {
  bytes: 1,
  // More than linear time.
  int: 8,
  uint: 8,
  size: 1,
  split: 1,
  substring: 1,
}

/** Functions that look into lists and maps. */
const DEEP = new Set(['_==_', '_!=_', '@in'])

/** Describes a call whose arguments fit none of the functions of that name. */
export function describeMismatch(name: string, types: readonly CelType[]): string {
  const names = types.map(({ name: type }) => type.replace('google.protobuf.', '').toLowerCase())
  const operator = OPERATOR.exec(name)?.groups?.['symbol'] ?? (name === '@in' ? 'in' : undefined)
  const hint =
    operator !== undefined && names.includes('double') && names.includes('int')
      ? '; write the whole number with a point, such as 100.0'
      : ''
  return `${operator ?? `${name}(…)`} cannot be used with ${names.join(' and ') || 'nothing'}${hint}`
}

const OPERATOR = /^_?(?<symbol>[^\w@]+)_?$/
