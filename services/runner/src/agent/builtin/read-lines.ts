import { toWords } from './name-words.ts'
import {
  type ContextObject,
  type ContextValue,
  type KnownNames,
  parseJson,
  parseStructure,
  type ReadContext,
  toObject,
} from './context-value.ts'
import { addUnit, splitUnit } from './name-unit.ts'
import { leaveOutOlderMail } from './older-mail.ts'
import { readTable } from './read-table.ts'
import { findCorrection, findRemark, findRemarkInValue } from './unread-text.ts'

/** The text before the separator of a line: a name of at most 100 characters, with or without quotes and emphasis. */
const LABEL =
  /^["'`*_]{0,2}(?<name>(?=[^\p{L}]{0,20}\p{L})[\p{L}\p{N}#№][\p{L}\p{M}\p{N} _.\-/()#&'’№（）€$£¥%]{0,99}?)["'`*_]{0,2}$/u

const BULLET = /^(?:(?:[-*•–·▪◦‣+]|\d{1,3}[.)])\s+|・\s*|[■◆●▼◇○□▶]\s*(?=[^:：]{1,100}[:：]))/u
const CHECKBOX = /^(?<mark>[[(][ xX✓]?[\])]|[☑☐☒✅❌])\s*(?<name>[^:：]{1,100})$/u
/** "Newsletter [x]" */
const CHECKBOX_AFTER = /^(?<name>[^:：=[\]()]{1,100}?)\s*(?<mark>[[(][ xX✓]?[\])]|[☑☐☒✅❌])$/u
const HEADING =
  /^(?:#{1,6}\s+(?<hash>.{1,100}?)\s*#*|\*\*(?<bold>[^*:]{1,100})\*\*|={2,}\s*(?<equals>[^=]{1,100}?)\s*={2,}|\[(?<ini>\p{L}[\p{L}\p{N} ]{2,60})\]|[■◆●▼]\s*(?<mark>[^:：]{1,100}))$/u

/** Names of values that go on in the next lines. */
const LONG = new Set([
  'message',
  'description',
  'note',
  'body',
  'text',
  'content',
  'summary',
  'detail',
  'reason',
  'issue',
  'instruction',
  'feedback',
  'question',
  'request',
  'inquiry',
  'complaint',
  'anliegen',
  'problem',
  '内容',
  '本文',
  '詳細',
  '理由',
  '要望',
])
/** Those that contain any lines, also ones that look like a name and its value. */
const MESSAGES = new Set([
  'message',
  'body',
  'text',
  'content',
  'request',
  'inquiry',
  'question',
  'feedback',
  'complaint',
  'anliegen',
  '内容',
  '本文',
  '要望',
])
/** Those that end at an empty line. */
const ONE_PARAGRAPH = new Set(['note', 'address', 'reason', 'instruction'])

/** Words of headings above all values. */
const WHOLE_TITLES = new Set(
  `detail details information info data datum daten angaben summary overview general order invoice ticket lead request booking event form submission reservation new message bestelldaten rechnungsdaten kontaktdaten kontakt contact allgemein übersicht hello hi hallo hey registration inquiry anfrage formular report product products position line item items id 内容 詳細 情報`.split(
    ' ',
  ),
)

/** The end of a letter, with or without a name: names and values after it are those of its sender. */
const CLOSING =
  /^(?:--$|(?:thanks|thank you|many thanks|cheers|sincerely|yours|best wishes|(?:best|kind|warm|kindest|warmest) regards|best|regards|mit (?:freundlichen|besten|herzlichen) grü(?:ß|ss)en|(?:viele|beste|liebe|herzliche|freundliche) grü(?:ß|ss)e|vielen dank|danke|mfg|lg)(?=$|[\s,!.])|(?:よろしくお願い|以上))/iu

function isClosing(text: string): boolean {
  const closing = CLOSING.exec(text)?.[0]
  // "Thanks for the order" is no end of a letter, "Thanks, Ada" is.
  return (
    closing !== undefined &&
    /^[\s,!.。]*(?:\p{Lu}[^:：]{0,60})?$|^[、,\s]*(?=[よ以い])/u.test(text.slice(closing.length))
  )
}

/** A line after an empty one with which an automatic mail ends: no part of the value before it. */
const FOOTER =
  /^(?:this (?:e-?mail|message|is an auto)|(?:please )?do not reply|you (?:receive|received|are receiving) this|sent (?:from|via|by) |unsubscribe|if you (?:did not|didn['’]t|have (?:any )?questions|need help)|we look forward|©|copyright|diese (?:e-?mail|nachricht) |dies ist eine auto|bitte (?:darauf |hierauf )?nicht |sie erhalten diese|gesendet (?:von|mit|über) |bei (?:rück)?fragen|wir freuen uns|このメール|本メール|※)/iu

const FORWARDED =
  /^(?:[-_]{2}|\*{3})[-_*\s]*[^:：]{0,60}(?:message|nachricht|forwarded|weitergeleitet|weiterleitung|転送)/iu

/** Names of an email's header. Its date is the one of the email, not of what it is about. */
const MAIL_HEADER = /^(?:from|to|cc|bcc|sent|date|reply-to|von|an|gesendet|datum|kopie|差出人|宛先|送信日時|日時)$/iu

interface Pair {
  readonly kind: 'pair'
  readonly indent: number
  readonly name: string
  readonly words: string
  /** Currency or unit after the name, such as "(EUR)". */
  readonly unit: string
  value: string
  /** Lines of the value after the first. */
  readonly more: string[]
  readonly children: Node[]
  readonly isKnown: boolean
  readonly isLong: boolean
  /** Whether the name is written in bold. */
  isBold: boolean
  readonly isCheckbox: boolean
  isHeading: boolean
}

/** A bullet, with the pairs or the text after it. */
interface Item {
  readonly kind: 'item'
  readonly indent: number
  readonly text: string
  readonly children: Node[]
}

interface Table {
  readonly kind: 'table'
  readonly indent: number
  readonly rows: readonly ContextObject[]
}

type Node = Pair | Item | Table

interface Line {
  readonly text: string
  readonly indent: number
  readonly isAfterBlank: boolean
  readonly isQuoted: boolean
}

/** Reads lines `name: value`, sections, lists, tables and repeated blocks. */
export function readLines(context: string, known: KnownNames): ReadContext {
  const { lines: ownLines, problem: olderProblem } = leaveOutOlderMail(splitLines(context), (line) =>
    listNames(line, known),
  )
  const lines = joinFormLines(ownLines, known)
  const root: Pair = { ...newPair('', '', 0, known), indent: -1 }
  const stack: (Pair | Item)[] = [root]
  let problem = olderProblem
  let section: Pair | undefined
  let last: Pair | undefined
  let isSignature = false
  let isMailHeader = false

  const addPair = (parent: Pair | Item, pair: Pair): void => {
    parent.children.push(pair)
    last = pair
  }
  const addUnread = (text: string): void => {
    problem ??= findCorrection(text)
  }
  const addProse = (text: string): void => {
    problem ??= findCorrection(text) ?? findRemark(text, known)
  }

  for (let index = 0; index < lines.length; index += 1) {
    const { text, indent, isAfterBlank } = lines[index] as Line
    if (FORWARDED.test(text)) {
      isSignature = false
      isMailHeader = true
      continue
    }
    if (isAfterBlank) isMailHeader = false
    if (
      /^(?:from|von|差出人)\s*[:：].*@/iu.test(text) &&
      (isSignature || index === 0 || isAfterBlank || isMailHeader)
    ) {
      isMailHeader = true
      isSignature = false
    }
    if (isClosing(text) && !(last?.isLong && !isAfterBlank)) isSignature = true
    if (isSignature) {
      addUnread(text)
      continue
    }
    const table = readTable(lines, index, known)
    if (table) {
      if (table.problem !== undefined) problem ??= table.problem
      const target =
        section ?? (last && last.value === '' && last.more.length === 0 && last.children.length === 0 ? last : root)
      if (table.rows.length > 0) target.children.push({ kind: 'table', indent, rows: table.rows })
      for (const [name, value] of table.pairs) addPair(root, newPair(name, value, 0, known))
      index += table.lineCount - 1
      last = undefined
      continue
    }
    const heading = HEADING.exec(text)?.groups
    const title =
      heading?.['hash'] ?? heading?.['bold'] ?? heading?.['equals'] ?? heading?.['ini'] ?? heading?.['mark'] ?? text
    const titleWords = toWords(title)
    if (heading || (known.isSection(titleWords) && !/[:：=]/u.test(text))) {
      stack.length = 1
      section = undefined
      last = undefined
      const pair = heading ? parsePair(title, indent, known) : undefined
      if (pair && pair.value !== '') addPair(root, pair)
      else if (known.isSection(titleWords)) {
        section = newPair(title, '', indent, known)
        section.isHeading = true
        root.children.push(section)
      } else {
        section = openForeignSection(root, title, known)
        addUnread(text)
      }
      continue
    }
    if (isTitle(lines, index, known) && !known.isField(titleWords)) {
      const foreign = openForeignSection(root, title, known)
      if (foreign) {
        stack.length = 1
        last = undefined
        section = foreign
        continue
      }
    }
    if (section && isAfterBlank && !section.isHeading) section = undefined

    const bullet = BULLET.exec(text)?.[0] ?? ''
    const content = text.slice(bullet.length)
    const pairs = parsePairs(content, indent + bullet.length, known)
    if (isAfterBlank && last && (isOneParagraph(last) || FOOTER.test(content))) last = undefined
    // "**May we call you?** No" is the next question of a form, although it has no colon.
    if (last?.isBold && /^(?:\*\*|__)[^*_]{1,100}(?:\*\*|__)/.test(content)) last = undefined
    const isOpenLong = last?.isLong === true && last.isKnown
    const isOtherName = last !== undefined && indent <= last.indent && endsValue(last, pairs[0])
    if (last && isOpenLong && !isOtherName && indent >= last.indent && !pairs.some(({ isKnown }) => isKnown)) {
      last.more.push(...(isAfterBlank && last.more.length > 0 ? ['', text] : [text]))
      continue
    }
    const isBox = pairs[0]?.isCheckbox === true && !pairs[0].isKnown
    const isListItem = bullet !== '' || isBox
    while (stack.length > 1 && (stack.at(-1)?.indent ?? 0) >= indent && !isListOf(stack.at(-1), indent, isListItem))
      stack.pop()
    const [first] = pairs
    if (section && !section.isHeading && isSectionEnd(section, indent, first, known)) section = undefined
    let parent = stack.at(-1) ?? root
    if (parent === root && section) parent = section
    if (!first) {
      if (bullet !== '' && !isAfterBlank && last?.isKnown === true && last.value !== '' && indent <= last.indent) {
        problem ??= `a list goes on below a value: ${JSON.stringify(text.slice(0, 100))}`
      }
      if (bullet !== '') parent.children.push({ kind: 'item', indent, text: content, children: [] })
      else if (parent.kind === 'pair' && parent !== root && parent !== section && indent > parent.indent)
        parent.more.push(text)
      else if (
        last &&
        last.value === '' &&
        last.children.length === 0 &&
        (last.more.length === 0 || known.isList(last.words)) &&
        !isAfterBlank
      ) {
        last.more.push(text)
      } else addProse(text)
      continue
    }
    if (isMailHeader && MAIL_HEADER.test(first.name) && !/^(?:from|von|to|an|差出人|宛先)$/iu.test(first.name)) continue
    const isContinuation =
      bullet === '' && parent.kind === 'pair' && parent !== root && parent !== section && parent.value !== ''
    if (isContinuation && !first.isKnown && parent.kind === 'pair') {
      parent.more.push(text)
      continue
    }
    if (pairs.length === 1 && !first.isKnown) {
      addUnread(`${first.name}: ${withoutOccasion(first)}`)
      problem ??= findRemarkInValue(first.value)
    }
    if (
      pairs.length === 1 &&
      first.isKnown &&
      !first.isLong &&
      (hasOtherName(first.value, known) || hasNameInside(first.value, known))
    ) {
      problem ??= `a line has more than one name: ${JSON.stringify(text.slice(0, 100))}`
    }
    // Known names that are indented below a value belong beside it.
    const target = isContinuation ? (section ?? root) : parent
    if (bullet !== '') {
      const item: Item = { kind: 'item', indent, text: '', children: [] }
      target.children.push(item)
      stack.push(item)
      for (const pair of pairs) addPair(item, pair)
    } else for (const pair of pairs) addPair(target, pair)
    const newest = pairs.at(-1) ?? first
    // A block of YAML: "note: |" and then indented lines.
    const block = /^(?<mark>[|>])[+-]?$/u.exec(newest.value)?.groups?.['mark']
    if (block !== undefined) {
      const rest = lines.slice(index + 1)
      const end = rest.findIndex((line) => line.indent <= indent)
      const own = rest.slice(0, end === -1 ? rest.length : end)
      if (own.length === 0 || own.some((line, position) => position > 0 && line.isAfterBlank)) {
        problem ??= `a block of YAML cannot be read: ${JSON.stringify(text.slice(0, 100))}`
      }
      newest.value = own.map((line) => line.text).join(block === '|' ? '\n' : ' ')
      index += own.length
      last = undefined
      continue
    }
    if (!isContinuation) stack.push(newest)
    if (
      bullet === '' &&
      newest.value === '' &&
      (parent === root || parent === section) &&
      known.isSection(newest.words)
    ) {
      section = newest
    }
  }
  const lists: ContextObject[][] = []
  const values = toValues(groupItems(withoutIntroduction(root.children), known, lists), lists)
  return { values, lists, problem }
}

/** "New starter for the list:", with everything below it, is no section. */
function withoutIntroduction(nodes: readonly Node[]): readonly Node[] {
  const [only, ...others] = nodes
  if (only?.kind !== 'pair' || others.length > 0 || only.isKnown || only.value !== '' || only.more.length > 0)
    return nodes
  return only.words.split(' ').length > 2 && only.children.length > 1 ? only.children : nodes
}

/**
 * Joins the lines of a form whose names are above their values, with an empty line between the fields: at least two names
 * of fields, each above one line that is no name.
 */
function joinFormLines(lines: readonly Line[], known: KnownNames): readonly Line[] {
  const isName = (line: Line | undefined): boolean =>
    line !== undefined && line.text.length <= 60 && !/[:：=|;\t]/.test(line.text) && known.isField(toWords(line.text))
  const starts = lines.flatMap(({ isAfterBlank }, index) => {
    const [line, value, next] = lines.slice(index, index + 3)
    const isFirst = isAfterBlank || index === 0
    const isSingle = value !== undefined && !value.isAfterBlank && (next === undefined || next.isAfterBlank)
    return isFirst && isSingle && isName(line) && !isName(value) && !/[:：]/.test(value.text) ? [index] : []
  })
  if (starts.length < 2) return lines
  const names = new Set(starts)
  return lines.flatMap((line, index) => {
    if (names.has(index - 1)) return []
    return names.has(index) ? [{ ...line, text: `${line.text}: ${lines[index + 1]?.text ?? ''}` }] : [line]
  })
}

/** The known names in a line: of pairs, or of the columns of a table. */
function listNames({ text, indent }: Line, known: KnownNames): string[] {
  const content = text.slice(BULLET.exec(text)?.[0].length ?? 0)
  const names = parsePairs(content, indent, known).flatMap((pair) => (pair.isKnown ? [pair.words] : []))
  if (names.length > 0 || !/[|;,\t]/.test(text)) return names
  const columns = text
    .split(/[|;,\t]/)
    .map((cell) => toWords(cell.trim()))
    .filter((words) => known.isField(words))
  return columns.length > 1 ? columns : []
}

/** The subject of a mail without the words that only say why it was written: its values are those that are meant. */
function withoutOccasion({ words, value }: Pair): string {
  return words === 'subject' ? value.replace(OCCASION, '') : value
}

const OCCASION =
  /(?<!\p{L})(?:correction|corrected|updated?|revised|new|korrektur|korrigierte?[nrs]?|berichtig(?:te?[nrs]?|ung)|aktualisierte?[nrs]?|änderung|geänderte?[nrs]?)(?!\p{L})|訂正|修正|変更/giu

/** Whether the line is a title without a mark: one to three words above a line with a name and its value. */
function isTitle(lines: readonly Line[], index: number, known: KnownNames): boolean {
  const line = lines[index]
  const next = lines[index + 1]
  if (!line || !next || next.isAfterBlank || (index > 0 && !line.isAfterBlank)) return false
  if (next.indent > line.indent || !/^\p{Lu}[\p{L}\p{N}'’]*(?: [\p{L}\p{N}'’]+){0,2}[:：]?$/u.test(line.text))
    return false
  return parsePairs(next.text, next.indent, known).length > 0
}

/**
 * Opens a section for a heading that names nothing of the example: below "Supplier", a name and an address are not those of
 * the customer. Undefined for headings of the whole, such as "New order" or "Details".
 */
function openForeignSection(root: Pair, title: string, known: KnownNames): Pair | undefined {
  const words = toWords(title).split(' ')
  const isPast = /(?<!\p{L})(?:previous|old|former|prior|bisherige|alte|vorherige)(?!\p{L})/iu.test(title)
  if (words[0] === '' || words.length > 4 || isPast) {
    if (!isPast) return undefined
  } else if (words.some((word) => WHOLE_TITLES.has(word) || known.isSection(word))) return undefined
  const section = newPair(title.replace(/[:：]$/u, ''), '', 0, known)
  section.isHeading = true
  root.children.push(section)
  return section
}

/** A section without indentation ends at another one; one with indentation ends where the indentation does. */
function isSectionEnd(section: Pair, indent: number, next: Pair | undefined, known: KnownNames): boolean {
  if (indent > section.indent) return false
  const isNewSection = next?.value === '' && known.isSection(next.words)
  return isNewSection || section.children.some((child) => child.indent > section.indent)
}

/** Lists that begin in the column of their name: "Items:" and then "- A". */
function isListOf(node: Pair | Item | undefined, indent: number, isListItem: boolean): boolean {
  return isListItem && node?.kind === 'pair' && node.indent === indent && node.value === '' && node.more.length === 0
}

function splitLines(context: string): Line[] {
  const lines: Line[] = []
  let isAfterBlank = false
  for (const raw of context.split(/\r\n|[\n\r\u2028\u2029]/u)) {
    const isQuoted = raw.startsWith('>')
    const line = raw.replace(/^(?:>\s?)+/u, '').replaceAll('\t', '    ')
    const text = (line === raw ? raw : raw.replace(/^(?:>\s?)+/u, '')).trim()
    if (text === '' || /^(?:```|~~~)/.test(text) || /^[-_=*]{3,}$/.test(text)) {
      isAfterBlank = true
      continue
    }
    lines.push({ text, indent: line.length - line.trimStart().length, isAfterBlank, isQuoted })
    isAfterBlank = false
  }
  return lines
}

function newPair(name: string, value: string, indent: number, known: KnownNames): Pair {
  const { name: plainName, unit } = splitUnit(name)
  const words = toWords(plainName)
  const isLong = words.split(' ').some((word) => LONG.has(word) || word === 'address')
  const isKnown = known.isField(words) || known.isSection(words)
  return {
    kind: 'pair',
    indent,
    name: plainName,
    words,
    unit,
    value,
    more: [],
    children: [],
    isKnown,
    isLong,
    isBold: false,
    isCheckbox: false,
    isHeading: false,
  }
}

/**
 * Whether the pair is a value of its own and no line of the value before it. Only a message, which is often the last value,
 * goes on over lines such as "Error: 5".
 */
function endsValue({ words, more }: Pair, pair: Pair | undefined): boolean {
  if (!pair || !/^(?:\p{Lu}|[^\p{Ll}])/u.test(pair.name) || pair.name.split(/\s+/u).length > 4) return false
  const list = words.split(' ')
  if (list.some((word) => MESSAGES.has(word))) return false
  return more.length === 0 || list.some((word) => ONE_PARAGRAPH.has(word))
}

function isOneParagraph({ words }: Pair): boolean {
  return words.split(' ').some((word) => ONE_PARAGRAPH.has(word))
}

/** The pair or pairs of a line: `a: 1`, `a: 1, b: 2`, `[x] a`. */
function parsePairs(text: string, indent: number, known: KnownNames): Pair[] {
  const checkbox = CHECKBOX.exec(text)?.groups
  if (checkbox) {
    const pair = newPair(checkbox['name'] ?? '', plainMark(checkbox['mark']), indent, known)
    return [{ ...pair, isCheckbox: true }]
  }
  const after = CHECKBOX_AFTER.exec(text)?.groups
  const marked = after && newPair(after['name'] ?? '', plainMark(after['mark']), indent, known)
  if (marked?.isKnown) return [{ ...marked, isCheckbox: true }]
  const single = parsePair(text, indent, known)
  if (!single || !hasOtherName(single.value, known)) return single ? [single] : []
  for (const separator of [/\s*\|\s*/u, /\s*;\s*/u, /,\s+/u, /\s+[-–—·•]\s+/u, /\s{2,}/u]) {
    const pairs = text.split(separator).map((part) => parsePair(part, indent, known))
    if (pairs.length > 1 && pairs.every((pair) => pair?.isKnown && !hasOtherName(pair.value, known))) {
      return pairs.flatMap((pair) => pair ?? [])
    }
  }
  return [single]
}

function plainMark(mark = ''): string {
  return mark.replace(/^[[(] ?[\])]$/, '☐').replace(/^[[(].[\])]$/, '[x]')
}

const OTHER_NAME = /(?:[,;|·•]\s{0,5}|\s[-–—]\s|\s{2,5})(?<name>[\p{L}\p{N}][\p{L}\p{M}\p{N} _.-]{0,40})\s{0,5}[:：=]/gu

function hasOtherName(value: string, known: KnownNames): boolean {
  if (!/[,;|·•]|\s[-–—\s]/.test(value) || /^[[{"]/.test(value)) return false
  return [...value.matchAll(OTHER_NAME)].some(({ groups }) => known.isField(toWords(groups?.['name'] ?? '')))
}

/** Whether a value has one of the names in it, with a value of its own: "1 TOTAL: 5", "1&total=5". */
function hasNameInside(value: string, known: KnownNames): boolean {
  if (!/[:：=]/u.test(value) || /^[[{"]/.test(value) || /:\/\//.test(value)) return false
  return [...value.matchAll(/(?<name>[\p{L}\p{N}][\p{L}\p{M}\p{N} _.-]{0,40})\s{0,5}[:：=]/gu)].some(({ groups }) => {
    const words = (groups?.['name'] ?? '').trim().split(/\s+/u)
    return [1, 2, 3].some((count) => count <= words.length && known.isField(toWords(words.slice(-count).join(' '))))
  })
}

/** "Ich möchte mich anmelden:", "here are the details:": a sentence before the names, and none itself. */
const INTRODUCTION =
  /(?<![\p{L}\p{N}])(?:i|we|you|please|here|following|below|attached|would|ich|wir|sie|ihnen|bitte|hier|hiermit|folgende[mnrs]?|möchten?|anbei|unten)(?![\p{L}\p{N}])/iu

function isIntroduction(text: string, known: KnownNames): boolean {
  if (!/^[\p{L}\s,'’-]{10,100}[:：]$/u.test(text) || !INTRODUCTION.test(text)) return false
  const words = toWords(text)
  return text.split(/\s+/u).length > 2 && !known.isField(words) && !known.isSection(words)
}

function parsePair(fullText: string, indent: number, known: KnownNames): Pair | undefined {
  if (isIntroduction(fullText, known)) return undefined
  // "【注文番号】AB-12"
  const text = fullText.replace(/^【([^】]{1,60})】\s*[:：]?\s*(?=\S)/u, '$1：')
  // A name contains no separator, so it ends at the first one. A URL such as https://example.com has no name.
  const separator = text.search(/[:：=]/u)
  if (separator > 0 && separator < 110 && !text.startsWith('//', separator + 1)) {
    // "**Total:** 5" has the end of its emphasis after the separator.
    const before = text
      .slice(0, separator)
      .trim()
      .replace(/\?$/, '')
      // "customer[name]" of a web form.
      .replaceAll(/(?<=[\w\]])\[(\w{1,40})\]/g, '.$1')
    const emphasis = /^(\*\*|__|\*|_)/.exec(before)?.[0] ?? ''
    const after = text.slice(separator + 1)
    const isOpen = emphasis !== '' && !before.slice(emphasis.length).includes(emphasis) && after.startsWith(emphasis)
    const name = LABEL.exec(before)?.groups?.['name']?.trim()
    if (name !== undefined) {
      const value = (isOpen ? after.slice(emphasis.length) : after).trim()
      return { ...newPair(name, value, indent, known), isBold: emphasis !== '' }
    }
  }
  // "Order #4711"
  const numbered = /^(?<name>\p{L}[\p{L} ]{1,40}?)\s(?:#|№|no\.|nr\.)\s?(?<value>(?=\S*\d)[\p{L}\d/_.-]{1,40})$/iu.exec(
    text,
  )?.groups
  const id = numbered && newPair(`${numbered['name']} #`, numbered['value'] ?? '', indent, known)
  if (id?.isKnown) return id
  const spaced = /^(?<name>[^\t–—]{1,60}?)(?:\s*\t+\s*|\s+[-–—]\s+|\s{3,}|\s?\.{3,}\s?)(?<value>[^\s.].*)$/u.exec(
    text,
  )?.groups
  const name = spaced && LABEL.exec(spaced['name'] ?? '')?.groups?.['name']?.trim()
  const pair = name === undefined ? undefined : newPair(name, spaced?.['value'] ?? '', indent, known)
  return pair?.isKnown ? pair : undefined
}

/** Takes the blocks of repeated item fields out of the top level: "Item: A", "Quantity: 2", "Item: B", "Quantity: 1". */
function groupItems(nodes: readonly Node[], known: KnownNames, lists: ContextObject[][]): readonly Node[] {
  const rest: Node[] = []
  const blocks: Pair[][] = []
  for (const [index, node] of nodes.entries()) {
    let pair = node.kind === 'pair' && node.children.length === 0 ? node : undefined
    if (pair && isSeveral(pair, known)) pair = undefined
    if (pair && isItemHead(pair, nodes[index + 1], known)) continue
    if (pair) pair = nameOfItem(pair, nodes[index + 1], known) ?? pair
    const numbered = pair && /^(?<stem>.{1,40}?)\s*#?\d{1,3}$/u.exec(pair.name)?.groups?.['stem']
    const words = numbered === undefined ? pair?.words : toWords(numbered)
    if (!pair || words === undefined || !known.isItemField(words)) {
      rest.push(node)
      continue
    }
    const block = blocks.at(-1)
    const entry: Pair = numbered === undefined ? pair : { ...pair, name: numbered, words }
    const first = blocks[0]?.[0]?.words
    if (!block || block.some((each) => each.words === words) || (first === words && block.length > 0))
      blocks.push([entry])
    else block.push(entry)
  }
  if (blocks.length === 0) return nodes
  // A name that other blocks have is blank here, so that no number is taken for zero.
  const names = new Map(blocks.flat().map((pair) => [pair.words, pair.name]))
  const rows = blocks.map((block) => {
    const own = new Set(block.map(({ words }) => words))
    const missing = [...names].filter(([words]) => !own.has(words)).map(([, name]) => [name, ''] as const)
    return toObject([...block.map((pair) => [pair.name, pairValue(pair, lists)] as const), ...missing])
  })
  lists.push(rows)
  return rest
}

/** "Item: Oak shelf" above "Quantity: 2" is the name of an item, where the list has the name and its items have none such. */
function nameOfItem(pair: Pair, next: Node | undefined, known: KnownNames): Pair | undefined {
  const name = known.isItemField(pair.words) ? undefined : known.itemNameField(pair.words)
  if (name === undefined || next?.kind !== 'pair' || !known.isItemField(next.words)) return undefined
  const isName = /\p{L}/u.test(pair.value) && !/[,;、\n]|^\S*\d\S*$/u.test(pair.value) && pair.more.length === 0
  return isName && !/s$/iu.test(pair.name) ? { ...pair, name, words: toWords(name) } : undefined
}

/** "Item: Oak shelf" above "Quantity: 2", where neither the items nor anything else of the example has a name for it. */
function isItemHead(pair: Pair, next: Node | undefined, known: KnownNames): boolean {
  const isList = known.isSection(pair.words) && !known.isItemField(pair.words) && !/s$/iu.test(pair.name)
  if (!isList || known.itemNameField(pair.words) !== undefined || isSeveral(pair, known)) return false
  return next?.kind === 'pair' && known.isItemField(next.words) && pair.more.length === 0 && /\p{L}/u.test(pair.value)
}

/** "Products: Foo, Bar": several items, not the name of one. */
function isSeveral({ name, words, value }: Pair, known: KnownNames): boolean {
  return /s$/iu.test(name) && /[,;、]/u.test(value) && known.isSection(words)
}

function toValues(nodes: readonly Node[], lists: ContextObject[][]): ContextObject {
  const entries: [string, ContextValue][] = []
  const items: ContextObject[] = []
  for (const node of nodes) {
    if (node.kind === 'table') lists.push([...node.rows])
    else if (node.kind === 'pair') entries.push([node.name, pairValue(node, lists)])
    else if (node.children.length === 1 && node.children[0]?.kind === 'pair') {
      const [pair] = node.children
      entries.push([pair.name, pairValue(pair, lists)])
    } else if (node.children.length > 1) items.push(toValues(node.children, lists))
  }
  if (items.length > 0) lists.push(items)
  return toObject(entries)
}

function pairValue({ value, more, children, unit, isLong }: Pair, lists: ContextObject[][]): ContextValue {
  if (children.length > 0 && value === '' && more.length === 0) return childrenValue(children, lists)
  const text = [value, ...trimClosing(more, isLong)].filter((line, index) => line !== '' || index > 0).join('\n')
  if (more.length > 0) return text
  const single = parseLineValue(text)
  return typeof single === 'string' ? addUnit(single, unit) : single
}

function childrenValue(children: readonly Node[], lists: ContextObject[][]): ContextValue {
  const [first] = children
  if (first?.kind === 'table') return [...first.rows]
  const boxes = children.flatMap((child) => (child.kind === 'item' ? child.children : [child]))
  if (boxes.length === children.length && boxes.every((box) => box.kind === 'pair' && box.isCheckbox && !box.isKnown))
    return listChecked(boxes)
  const items = children.flatMap((child) => (child.kind === 'item' ? [child] : []))
  if (items.length < children.length) return toValues(children, lists)
  if (items.every((item) => item.children.length === 0)) return items.map(({ text }) => text)
  const names = items.map((item) => (item.children[0]?.kind === 'pair' ? item.children[0].name : ''))
  const isList = items.some((item) => item.children.length > 1) || new Set(names).size < items.length
  return isList ? items.map((item) => toValues(item.children, lists)) : toValues(children, lists)
}

/** The names of the check boxes with a mark. */
function listChecked(boxes: readonly Node[]): string[] {
  return boxes.flatMap((box) => (box.kind === 'pair' && box.value !== '☐' && box.value !== '❌' ? [box.name] : []))
}

/** Without the end of a letter after the last paragraph. */
function trimClosing(lines: readonly string[], isLong: boolean): readonly string[] {
  const end = isLong ? lines.findIndex((line, index) => lines[index - 1] === '' && isClosing(line)) : -1
  return end === -1 ? lines : lines.slice(0, end - 1)
}

/** "[x] Card [ ] Cash", "☑ Card ☐ Cash" */
const BOXES = /^(?:(?:\[[ xX✓]?\]|[☑☐☒✅])\s*[^[\]☑☐☒✅\s][^[\]☑☐☒✅]{0,60}){2,20}$/u
const CHECKED = /(?:\[[xX✓]\]|[☑☒✅])\s*([^[\]☑☐☒✅]+)/gu

function parseLineValue(fullText: string): ContextValue {
  const full = fullText.replace(/^<(https?:\/\/[^<>\s]+)>$/u, '$1')
  if (BOXES.test(full)) return [...full.matchAll(CHECKED)].map(([, name = '']) => name.trim())
  const structure = parseStructure(full.replace(/,$/, ''))
  if (structure !== undefined) return structure
  const quoted = /^(?<text>".*"),?$/u.exec(full)?.groups?.['text']
  if (quoted !== undefined) return parseJson(quoted) ?? full
  const marked = /^(?<mark>\*\*|__|`|\*)(?<text>[^*_`]+)\k<mark>$/u.exec(full)?.groups
  return marked?.['text'] ?? full
}
