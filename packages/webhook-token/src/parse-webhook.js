// Reads the body of a request from the service. `parse-webhook.d.ts` has the documentation. The rules by which an
// example decides are those of the service (contract README, "Webhook sources"); a test compares both.

const VERIFICATION_TYPE = 'service.webhook.verification'
/** @type {unknown[]} */
const EVENT_TYPES = ['run.failed', 'run.cancelled', 'approval.waiting']
const MAX_PROBLEMS = 20
const MAX_LISTED_NAMES = 20
/** The service accepts no deeper example. What is deeper allows any value. */
const MAX_DEPTH = 32

/**
 * What an example says about a value: it may be one of the scalars, an object like `object`, or a list of items like
 * `list`.
 * @typedef {{ scalars: Set<string>, object: ObjectShape | null, list: Shape | null }} Shape
 * @typedef {{ count: number, fields: Map<string, { count: number, shape: Shape }> }} ObjectShape
 * @typedef {import('./parse-webhook.d.ts').PayloadProblem} Problem
 * @typedef {typeof import('./parse-webhook.d.ts')} Api
 */

/** @type {Api['parseWebhook']} */
export function parseWebhook(body, example) {
  if (!isObject(example)) throw new TypeError('the example must be the JSON object of the webhook source')
  const value = readBody(body)
  if (value === undefined) {
    return { kind: 'invalid', problems: [{ field: 'body', code: 'invalid_json', message: 'is not JSON' }] }
  }
  if (isObject(value) && value['type'] === VERIFICATION_TYPE) {
    return { kind: 'verification', verification: /** @type {any} */ (value) }
  }
  const shape = emptyShape()
  addExample(shape, example, 1)
  /** @type {Problem[]} */
  const problems = []
  compare(shape, value, [], problems)
  return problems.length > 0 ? { kind: 'invalid', problems } : { kind: 'payload', payload: /** @type {any} */ (value) }
}

/** @type {Api['parseEvent']} */
export function parseEvent(body) {
  const value = readBody(body)
  const isEvent = isObject(value) && EVENT_TYPES.includes(value['type']) && isObject(value['data'])
  return isEvent ? /** @type {any} */ (value) : undefined
}

/** @param {unknown} body */
function readBody(body) {
  const text = body instanceof Uint8Array || body instanceof ArrayBuffer ? new TextDecoder().decode(body) : body
  if (typeof text !== 'string') return text
  try {
    return /** @type {unknown} */ (JSON.parse(text))
  } catch {
    return undefined
  }
}

/** @returns {Shape} */
function emptyShape() {
  return { scalars: new Set(), object: null, list: null }
}

/**
 * Adds a value of the example to the shape of its position. Items of one list share a position.
 * @param {Shape} shape
 * @param {unknown} value
 * @param {number} depth
 */
function addExample(shape, value, depth) {
  if (typeof value !== 'object' || value === null) {
    shape.scalars.add(value === null ? 'null' : typeof value)
    return
  }
  if (depth > MAX_DEPTH) return
  if (Array.isArray(value)) {
    shape.list ??= emptyShape()
    for (const item of value) addExample(shape.list, item, depth + 1)
    return
  }
  shape.object ??= { count: 0, fields: new Map() }
  shape.object.count += 1
  for (const [name, item] of Object.entries(value)) {
    let field = shape.object.fields.get(name)
    if (!field) shape.object.fields.set(name, (field = { count: 0, shape: emptyShape() }))
    field.count += 1
    addExample(field.shape, item, depth + 1)
  }
}

/**
 * @param {Shape} shape
 * @param {unknown} value
 * @param {readonly string[]} path
 * @param {Problem[]} problems
 */
function compare(shape, value, path, problems) {
  if (problems.length >= MAX_PROBLEMS || allowsAnything(shape)) return
  if (isObject(value) && shape.object) {
    compareFields(shape.object, value, path, problems)
  } else if (Array.isArray(value) && shape.list) {
    for (let index = 0; index < value.length && problems.length < MAX_PROBLEMS; index += 1) {
      compare(shape.list, value[index], [...path, String(index)], problems)
    }
  } else if (!shape.scalars.has(value === null ? 'null' : typeof value)) {
    const types = typesOf(shape).filter((type) => type !== 'null')
    const code = types.length === 1 ? TYPES[types[0] ?? '']?.code : undefined
    add(problems, path, code ?? 'value_type', `must be ${describe(shape)}, not ${describeValue(value)}`)
  }
}

/**
 * @param {ObjectShape} object
 * @param {Record<string, unknown>} value
 * @param {readonly string[]} path
 * @param {Problem[]} problems
 */
function compareFields({ count, fields }, value, path, problems) {
  if (fields.size === 0) return
  const isFull = () => problems.length >= MAX_PROBLEMS
  const names = Object.keys(value)
  for (const name of names) {
    const field = fields.get(name)
    if (field) compare(field.shape, value[name], [...path, name], problems)
  }
  for (const [name, field] of fields) {
    if (isFull()) return
    if (field.count < count || Object.hasOwn(value, name)) continue
    add(problems, [...path, name], 'missing', `is required: ${describe(field.shape)}`)
  }
  for (const name of names) {
    if (isFull()) return
    if (fields.has(name)) continue
    const known = [...fields.keys()].slice(0, MAX_LISTED_NAMES).join(', ')
    add(problems, [...path, name], 'extra_forbidden', `is not in the example; the fields here are ${known}`)
  }
}

/**
 * @param {Problem[]} problems
 * @param {readonly string[]} path
 * @param {string} code
 * @param {string} message
 */
function add(problems, path, code, message) {
  problems.push({ field: path.join('.') || 'body', code, message })
}

/** @param {Shape} shape */
function allowsAnything({ scalars, object, list }) {
  return !object && !list && (scalars.size === 0 || (scalars.size === 1 && scalars.has('null')))
}

/** @type {Record<string, { code: string, words: string }>} */
const TYPES = {
  object: { code: 'dict_type', words: 'an object' },
  array: { code: 'list_type', words: 'a list' },
  string: { code: 'string_type', words: 'a string' },
  number: { code: 'float_type', words: 'a number' },
  boolean: { code: 'bool_type', words: 'true or false' },
  null: { code: 'value_type', words: 'null' },
}

/** @param {Shape} shape */
function typesOf({ scalars, object, list }) {
  return [...(object ? ['object'] : []), ...(list ? ['array'] : []), ...scalars]
}

/** @param {Shape} shape */
function describe(shape) {
  if (allowsAnything(shape)) return 'any value'
  return typesOf(shape)
    .map((type) => TYPES[type]?.words)
    .join(' or ')
}

/** @param {unknown} value */
function describeValue(value) {
  if (Array.isArray(value)) return 'a list'
  return TYPES[value === null ? 'null' : typeof value]?.words ?? 'a value that JSON cannot represent'
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
