import { PAYLOAD_MAX_DEPTH } from '@workflow-service/contract'
import { parseDate } from './convert-date.ts'
import { isCounted, parseNumber } from './convert-number.ts'
import { isAbsent, isEmail } from './convert-value.ts'
import { type ExampleField, type ExampleLevel, leaveOutWords } from './example-level.ts'
import { listTypes } from './example-schema.ts'
import { splitMeasure, unitOf } from './name-unit.ts'
import { toWords } from './name-words.ts'
import { normalizeName } from './normalize-name.ts'
import {
  type ContextObject,
  type ContextValue,
  isContextObject,
  isObjectList,
  NumberText,
  RepeatedValue,
} from './context-value.ts'

/** What the context has for the fields of a level. */
export interface FieldMatches {
  readonly values: Map<ExampleField, ContextValue>
  /** Names of the context that could be several fields, none of which has another value. */
  readonly ambiguous: readonly { readonly name: string; readonly fields: readonly ExampleField[] }[]
  /** Fields without a value, and a name without a field that is similar: "Name" where the example has `first_name`. */
  readonly related: readonly RelatedName[]
  /** The lists of objects that no field has got. */
  readonly unusedLists: readonly ContextObject[][]
}

interface RelatedName {
  readonly name: string
  readonly field: ExampleField
}

/** A named value of the context, outside lists. */
interface Entry {
  readonly path: readonly string[]
  readonly value: ContextValue
  readonly key: string
  readonly lastName: string
  readonly words: string
  readonly lastWords: string
  isUsed: boolean
  isAmbiguous: boolean
}

/**
 * Finds the value of each field in an object of the context: by exact path; by words after the table of synonyms; by the
 * last name, if field and name are unique and one of them is at the top level; by words without one that carries little
 * meaning. At each level only names and fields that are still open; several values for one field are a RepeatedValue.
 */
export function matchFields(
  level: ExampleLevel,
  context: ContextObject,
  isIdentifier: (field: ExampleField) => boolean,
): FieldMatches {
  const entries: Entry[] = []
  const nameCounts = new Map<string, number>()
  const wordCounts = new Map<string, number>()
  addEntries(context, [], '')
  const values = new Map<ExampleField, ContextValue>()
  const ambiguous: { name: string; fields: readonly ExampleField[]; entry: Entry }[] = []

  const objects = matchExactly()
  match((entry) => level.byWords.get(entry.words), takesValue)
  match((entry) => level.byLastName.get(entry.lastName), isOnlyName)
  match((entry) => level.byLastWords.get(entry.lastWords), isOnlyWords)
  matchFewerWords()
  addContradictions()
  // "customer": {…} for a text, of which no part fits: its conversion says so.
  for (const [field, value] of objects) if (!values.has(field)) values.set(field, value)
  return {
    values,
    ambiguous: ambiguous.filter(({ entry, fields }) => !entry.isUsed && fields.every((field) => !values.has(field))),
    related: [...findRelated(), ...findNewer(), ...findUnits()],
    unusedLists: entries.flatMap(({ value, isUsed }) => (!isUsed && isObjectList(value) ? [value] : [])),
  }

  /** Adds the values of other names for a field: "Order no.: 2" beside "Order ID: 1" for `order_id`. */
  function addContradictions(): void {
    for (const entry of entries) {
      if (entry.isUsed || entry.isAmbiguous || isContextObject(entry.value) || isAbsent(entry.value)) continue
      const [field, ...others] = level.byWords.get(entry.words) ?? []
      if (!field || others.length > 0 || field.takesObject || isList(field)) continue
      const value = values.get(field)
      if (value === undefined) continue
      entry.isUsed = true
      const known = value instanceof RepeatedValue ? value.values : [value]
      const own = entry.value instanceof RepeatedValue ? entry.value.values : [entry.value]
      values.set(field, isAbsent(value) ? entry.value : new RepeatedValue([...known, ...own]))
    }
  }

  /** Names such as "New delivery date", whose value replaces the one of a field. */
  function findNewer(): RelatedName[] {
    return entries.flatMap(({ path, value, isUsed }) => {
      const name = path.at(-1) ?? ''
      const isBelow = path.slice(0, -1).some((parent) => NEWER_PART.test(parent))
      const older = name.slice(0, 200).replace(NEWER, '').trim()
      if (isUsed || isContextObject(value) || isAbsent(value) || older === '') return []
      if (older.length === name.length && !isBelow) return []
      const words = toWords(older)
      const fewer = level.byFewerWords.get(words)?.map((each) => each.field)
      const [field] = level.byWords.get(words) ?? level.byLastWords.get(words) ?? fewer ?? []
      return field ? [{ name: path.join('.'), field }] : []
    })
  }

  /** Units of measure without a field beside a number: "Unit: kg" beside "Quantity: 25". */
  function findUnits(): RelatedName[] {
    return entries.flatMap(({ path, value, lastWords, isUsed }) => {
      if (isUsed || typeof value !== 'string' || !UNIT_NAMES.has(lastWords)) return []
      if (isAbsent(value) || isCounted(value) || value.length > 20) return []
      const measured = [...values.keys()].find(
        (field) =>
          isNumberField(field) &&
          /(?:^| )(?:quantity|weight|amount|length|volume)(?: |$)/.test(field.lastWords) &&
          !field.lastWords.split(' ').some((word) => unitOf(word) !== undefined && unitOf(word) === unitOf(value)),
      )
      return measured ? [{ name: path.join('.'), field: measured }] : []
    })
  }

  /** A value that is there but not used must not be left out silently. */
  function findRelated(): RelatedName[] {
    const unused = entries.filter(({ isUsed, value }) => !isUsed && !isContextObject(value) && !isAbsent(value))
    if (unused.length === 0) return []
    const byWord = Map.groupBy(
      unused.flatMap((entry) => entry.lastWords.split(' ').map((word) => ({ word, entry }))),
      ({ word }) => word,
    )
    const found: RelatedName[] = []
    for (const fields of level.byKey.values()) {
      for (const field of fields) {
        if (values.has(field) || !field.isRequired) continue
        const words = field.lastWords.split(' ')
        // "Address: 5 High Street, Leeds" has the street and the city, but not apart.
        if (words.some((word) => ADDRESS_PARTS.has(word))) words.push('address')
        const parent = field.path.length > 1 ? toWords(field.path.at(-2) ?? '') : ''
        // "Customer: C-7, Ada": a value for an object, none of whose fields takes it.
        const whole =
          parent === ''
            ? undefined
            : unused.find(({ lastWords, value }) => lastWords === parent && typeof value === 'string')
        const entry =
          whole ??
          words
            .flatMap((word) => byWord.get(word)?.slice(0, 20) ?? [])
            .find(({ word, entry: { lastWords } }) => {
              const name = lastWords.split(' ')
              if (isNumberField(field) && name.includes('id') && !words.includes('id')) return false
              return isRelated(word, words, name)
            })?.entry
        if (entry) found.push({ name: entry.path.join('.'), field })
      }
    }
    return found
  }

  /** Adds all named values of the context outside lists; an object comes before its members. */
  function addEntries(object: ContextObject, parents: readonly string[], parentKey: string): void {
    if (parents.length >= PAYLOAD_MAX_DEPTH) return
    for (const [name, given] of Object.entries(object)) {
      const value = level.sections.has(toWords(name)) ? splitPerson(given) : given
      const path = [...parents, name]
      const lastName = normalizeName(name)
      const lastWords = toWords(name)
      const key = parentKey + lastName
      const words = path.length === 1 ? lastWords : toWords(path.slice(-4).join(' '))
      entries.push({ path, value, key, lastName, words, lastWords, isUsed: false, isAmbiguous: false })
      nameCounts.set(lastName, (nameCounts.get(lastName) ?? 0) + 1)
      wordCounts.set(lastWords, (wordCounts.get(lastWords) ?? 0) + 1)
      if (isContextObject(value)) addEntries(value, path, key)
      // "Shipping: DHL" beside a section "Shipping".
      const all = value instanceof RepeatedValue ? value.values.filter(isContextObject) : []
      for (const each of all) addEntries(each, path, key)
    }
  }

  /** Gives each field the value of the same path. Returns the objects for fields that take none. */
  function matchExactly(): Map<ExampleField, ContextValue> {
    const found = new Map<ExampleField, Entry[]>()
    for (const entry of entries) {
      for (const field of level.byKey.get(entry.key) ?? []) {
        const known = found.get(field)
        if (known) known.push(entry)
        else found.set(field, [entry])
      }
    }
    const unfit = new Map<ExampleField, ContextValue>()
    for (const [field, all] of found) {
      const sameDepth = all.filter(({ path }) => path.length === field.path.length)
      const chosen = sameDepth.length > 0 ? sameDepth : all.slice(0, 1)
      const value = merge(chosen)
      if (isContextObject(value) && !field.takesObject) {
        unfit.set(field, value)
        continue
      }
      for (const entry of all) entry.isUsed = true
      values.set(field, value)
    }
    return unfit
  }

  function match(
    find: (entry: Entry) => readonly ExampleField[] | undefined,
    accepts: (entry: Entry, field: ExampleField) => boolean,
  ): void {
    const found = new Map<ExampleField, Entry[]>()
    for (const entry of entries) {
      if (entry.isUsed || entry.isAmbiguous) continue
      const all = find(entry) ?? []
      const open = all.filter((field) => !values.has(field) && takesValue(entry, field))
      const fields = open.filter((field) => accepts(entry, field))
      addCandidate(found, entry, open.length > 1 && entry.path.length === 1 ? open : fields)
    }
    assign(found)
  }

  function matchFewerWords(): void {
    const found = new Map<ExampleField, Entry[]>()
    for (const entry of entries) {
      if (entry.isUsed || entry.isAmbiguous) continue
      const fields = new Set<ExampleField>()
      const isAmong = new Set<ExampleField>()
      for (const { field, dropped } of level.byFewerWords.get(entry.words) ?? []) {
        if (isOpenFor(entry, field) && canDrop(dropped, entry, field, true)) fields.add(field)
      }
      for (const { words, dropped } of leaveOutWords(entry.words)) {
        for (const field of level.byWords.get(words) ?? []) {
          if (!isOpenFor(entry, field) || !canDrop(dropped, entry, field, false)) continue
          fields.add(field)
          // "order.status" beside "shipment.status": each could be the status.
          if (entry.path.length > 1 && (wordCounts.get(entry.lastWords) ?? 0) > 1) isAmong.add(field)
        }
      }
      if (isAmong.size > 0) {
        entry.isAmbiguous = true
        ambiguous.push({ name: entry.path.join('.'), fields: [...fields], entry })
      } else addCandidate(found, entry, [...fields])
    }
    assign(found)
  }

  function addCandidate(found: Map<ExampleField, Entry[]>, entry: Entry, fields: readonly ExampleField[]): void {
    const [field, ...others] = fields
    if (!field) return
    if (others.length > 0) {
      entry.isAmbiguous = true
      ambiguous.push({ name: entry.path.join('.'), fields, entry })
      return
    }
    const known = found.get(field)
    if (known) known.push(entry)
    else found.set(field, [entry])
  }

  function assign(found: ReadonlyMap<ExampleField, readonly Entry[]>): void {
    for (const [field, all] of found) {
      for (const entry of all) entry.isUsed = true
      values.set(field, merge(all))
    }
  }

  function isOpenFor(entry: Entry, field: ExampleField): boolean {
    return !values.has(field) && takesValue(entry, field)
  }

  function isOnlyName(entry: Entry, field: ExampleField): boolean {
    return (
      nameCounts.get(entry.lastName) === 1 && level.nameCounts.get(entry.lastName) === 1 && isSameThing(entry, field)
    )
  }

  function isOnlyWords(entry: Entry, field: ExampleField): boolean {
    return (
      wordCounts.get(entry.lastWords) === 1 && level.wordCounts.get(entry.lastWords) === 1 && isSameThing(entry, field)
    )
  }

  /** Whether a value at another path is that of the field: one of them is at the top level, and the name says enough. */
  function isSameThing({ path, lastWords }: Entry, field: ExampleField): boolean {
    if (field.path.length > 1 && path.length > 1) return false
    if (
      path.slice(0, -1).some((name) =>
        toWords(name)
          .split(' ')
          .some((word) => PAST.has(word)),
      )
    )
      return false
    const parent = toWords((field.path.length > 1 ? field.path : path).at(-2) ?? '')
    if (lastWords === 'name') return parent === '' || PERSONS.has(parent) || WHOLES.has(parent)
    return !GENERIC.has(lastWords) || parent === '' || WHOLES.has(parent)
  }

  function canDrop(dropped: string, { value }: Entry, field: ExampleField, isOfField: boolean): boolean {
    const text = value instanceof NumberText ? value.source : typeof value === 'string' ? value.trim() : undefined
    if (text === undefined || text.length > 200) return false
    const isDate = parseDate(text, 'date') !== undefined || /^\d{1,4}[./-]\d{1,2}[./-]\d{1,4}/.test(text)
    const isId = /\d/.test(text) && !/\s|^\d+[.,]\d+$/.test(text) && !isDate
    switch (dropped) {
      case 'name':
        return /\p{L}/u.test(text) && !isId && !text.includes('@')
      case 'id':
        // "VAT number: 12345" is no tax of 12345.
        return isId && (isOfField || (isIdentifier(field) && !isNumberField(field)))
      case 'date':
        return isDate
      case 'amount':
        return isNumber(text, false)
      case 'rate':
        return isNumber(text, true)
      case 'unit':
        return field.words.includes('price')
      case 'customer':
      case 'contact':
        return /(?:^| )(?:email|phone|mobile|name|company|address|id)(?: |$)/.test(field.words)
      default: {
        // "Weight: 3 kg" is `weight_kg`, "Weight: 3" may be.
        const unit = unitOf(dropped)
        return unit === undefined || (isOfField && isNumberField(field) && splitMeasure(text)?.unit === unit)
      }
    }
  }
}

function isNumberField({ schema }: ExampleField): boolean {
  return schema['type'] === 'number'
}

function isList({ schema }: ExampleField): boolean {
  return listTypes(schema).some((type) => type['type'] === 'array')
}

/** Words before or after a name that say that its value replaces another. */
const NEWER =
  /^(?:new|newer|updated?|revised|changed|corrected?|amended|actual|current|final|latest|neu(?:e[nrs]?)?|aktuelle?[nrs]?|aktualisierte?[nrs]?|geänderte?[nrs]?|korrigierte?[nrs]?|(?:新しい|新|変更後の?|更新後の?|訂正後の?|修正後の?))(?:[\s_:-]+|(?<=[新いの後])(?=\p{L})|(?<=^[a-z]+)(?=\p{Lu}))|(?:[\s_-]+|\s*[（([])(?:new|now|jetzt|updated|revised|changed|corrected|amended|neu|aktuell|aktualisiert|geändert|korrigiert|新|変更後|更新後|訂正後|修正後)[)）\]]?$|[\s_]+(?:after|nach|less|minus|abzüglich)[\s_]+(?:the[\s_]+)?\p{L}{2,20}$/iu

/** Objects of values that replace others. */
const NEWER_PART =
  /^(?:(?:new|updated?|revised|changed?|corrected|amended)(?: (?:values?|data|details))?|changes|updates|neue?|geändert|aktualisiert|korrigiert|änderungen|変更後|更新後|訂正)$/iu

/** "Ada <ada@acme.test>", "ada@acme.test": the name and the address of a person. */
function splitPerson(value: ContextValue): ContextValue {
  if (typeof value !== 'string' || value.length > 300) return value
  const text = value.trim()
  if (isEmail(text)) return { email: text }
  const { name, email } = /^["']?(?<name>[^<>@"']{1,100}?)["']?\s*<(?<email>[^<>\s]+)>$/u.exec(text)?.groups ?? {}
  return name !== undefined && email !== undefined && isEmail(email) ? { name, email } : value
}

const UNIT_NAMES = new Set(['unit', 'measure unit', 'uom', 'einheit', 'mengeneinheit', '単位'])

const ADDRESS_PARTS = new Set(['street', 'city', 'zip', 'country'])

/** Words that many names share. */
const COMMON = new Set([
  'id',
  'date',
  'amount',
  'order',
  'invoice',
  'ticket',
  'customer',
  'rate',
  'unit',
  'delivery',
  'shipping',
  'payment',
  'contact',
  'name',
  'address',
  'price',
  'type',
  'status',
  'code',
  'time',
  'company',
  'product',
  'note',
  'line',
  'billing',
  'vendor',
  'total',
  'net',
  'gross',
  'tax',
  'number',
  'email',
  'phone',
  'quantity',
])

/** Whether a field and a name that share a word may be the same: the word says much, or one has all words of the other. */
function isRelated(word: string, field: readonly string[], name: readonly string[]): boolean {
  if (!COMMON.has(word)) return true
  if (word === 'address' && field.some((each) => ADDRESS_PARTS.has(each))) return true
  const [shorter, longer] = field.length < name.length ? [field, name] : [name, field]
  return shorter.every((each) => longer.includes(each))
}

/** Objects of values that hold no more. */
const PAST = new Set([
  'previous',
  'old',
  'former',
  'last',
  'prior',
  'alt',
  'alte',
  'bisherig',
  'bisherige',
  'vorherige',
  '旧',
])

/** Names that mean little without what they are the name of. */
const GENERIC = new Set([
  'id',
  'date',
  'code',
  'type',
  'value',
  'status',
  'title',
  'description',
  'amount',
  'price',
  'address',
  'label',
  'kind',
  'note',
])
const PERSONS = new Set([
  'customer',
  'contact',
  'person',
  'lead',
  'user',
  'recipient',
  'applicant',
  'employee',
  'sender',
  'requester',
  'reporter',
  'guest',
  'member',
  'patient',
  'author',
  'caller',
  'attendee',
  'participant',
])
/** Objects around everything. */
const WHOLES = new Set([
  'data',
  'payload',
  'body',
  'record',
  'attribute',
  'field',
  'value',
  'object',
  'order',
  'invoice',
  'ticket',
  'lead',
  'request',
  'booking',
  'event',
  'item',
  'product',
  'form',
  'submission',
  'reservation',
  'answer',
  'response',
  'result',
  'detail',
  'information',
  'content',
])

function takesValue({ value }: Entry, field: ExampleField): boolean {
  return field.takesObject || !isContextObject(value)
}

function merge(entries: readonly Entry[]): ContextValue {
  const [first, ...others] = entries
  if (others.length === 0) return first?.value ?? null
  return new RepeatedValue(entries.flatMap(({ value }) => (value instanceof RepeatedValue ? value.values : [value])))
}

function isNumber(text: string, isPercent: boolean): boolean {
  const parsed = parseNumber(text)
  return 'error' in parsed ? !isPercent && parsed.error === 'ambiguous' : parsed.isPercent === isPercent
}
