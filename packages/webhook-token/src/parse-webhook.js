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
 * What an example says about a value: its types, the fields of objects and the items of lists. `count` is how many
 * values of the example are here, `objects` how many of them are objects.
 * @typedef {{ count: number, types: Set<string>, objects: number, fields: Map<string, Shape>, items?: Shape }} Shape
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
  return { count: 0, types: new Set(), objects: 0, fields: new Map() }
}

/**
 * Adds a value of the example to the shape of its position. Items of one list share a position.
 * @param {Shape} shape
 * @param {unknown} value
 * @param {number} depth
 */
function addExample(shape, value, depth) {
  shape.count += 1
  if (depth > MAX_DEPTH && typeof value === 'object' && value !== null) return
  shape.types.add(typeOf(value))
  if (Array.isArray(value)) {
    shape.items ??= emptyShape()
    for (const item of value) addExample(shape.items, item, depth + 1)
  } else if (isObject(value)) {
    shape.objects += 1
    for (const [name, item] of Object.entries(value)) {
      const field = shape.fields.get(name) ?? emptyShape()
      shape.fields.set(name, field)
      addExample(field, item, depth + 1)
    }
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
  const type = typeOf(value)
  if (!shape.types.has(type)) {
    const types = [...shape.types].filter((each) => each !== 'null')
    const code = types.length === 1 ? TYPES[types[0] ?? '']?.code : undefined
    const found = TYPES[type]?.words ?? 'a value that JSON cannot represent'
    add(problems, path, code ?? 'value_type', `must be ${describe(shape)}, not ${found}`)
  } else if (isObject(value)) {
    compareFields(shape, value, path, problems)
  } else if (Array.isArray(value) && shape.items) {
    for (const [index, item] of value.entries()) compare(shape.items, item, [...path, String(index)], problems)
  }
}

/**
 * @param {Shape} shape
 * @param {Record<string, unknown>} value
 * @param {readonly string[]} path
 * @param {Problem[]} problems
 */
function compareFields({ objects, fields }, value, path, problems) {
  if (fields.size === 0) return
  const names = Object.keys(value)
  for (const name of names) {
    const field = fields.get(name)
    if (field) compare(field, value[name], [...path, name], problems)
  }
  for (const [name, field] of fields) {
    if (field.count < objects || Object.hasOwn(value, name)) continue
    add(problems, [...path, name], 'missing', `is required: ${describe(field)}`)
  }
  const known = [...fields.keys()].slice(0, MAX_LISTED_NAMES).join(', ')
  for (const name of names) {
    if (fields.has(name)) continue
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
  if (problems.length < MAX_PROBLEMS) problems.push({ field: path.join('.') || 'body', code, message })
}

/** @param {Shape} shape */
function allowsAnything({ types }) {
  return [...types].every((type) => type === 'null')
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
function describe(shape) {
  if (allowsAnything(shape)) return 'any value'
  return Object.entries(TYPES)
    .filter(([type]) => shape.types.has(type))
    .map(([, { words }]) => words)
    .join(' or ')
}

/** @param {unknown} value */
function typeOf(value) {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
