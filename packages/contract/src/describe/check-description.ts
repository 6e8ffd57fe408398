import type { WorkflowWarningOut } from '../app/workflows.ts'
import { findNamedSources, findUnknownNames, normalizeText } from '../named-sources.ts'
import { truncateText } from '../schema/text.ts'

/** A reason why runs of a workflow may not do what its description says. */
export interface DescriptionWarning extends WorkflowWarningOut {
  /**
   * - `no_source_named`: each run fails with `no_destination`.
   * - `unknown_source_named`: a text in quotation marks names no webhook source.
   * - `rules_needed`: each run fails with this code, because a sentence, or the input message of the trigger, is none
   *   that the built-in agent reads.
   */
  readonly code: 'no_source_named' | 'unknown_source_named' | 'rules_needed'
}

/**
 * Checks a workflow's description, and the input message of its trigger, as the built-in agent reads them (contract
 * README, "The built-in agent"). Returns warnings in the order of their codes above; none if the agent can follow both.
 */
export function checkDescription(
  description: string,
  sources: readonly { readonly name: string }[],
  inputMessage = '',
): DescriptionWarning[] {
  const { named, rulesNeeded } = readDescription(description, sources, inputMessage)
  const warnings: DescriptionWarning[] = []
  if (named.length === 0) {
    const subject =
      sources.length === 0 ? 'The organization has no' : "The description names none of the organization's"
    const message = `${subject} webhook source${sources.length === 0 ? '' : 's'}, so nothing is sent`
    warnings.push({ code: 'no_source_named', message, excerpt: '' })
  }
  for (const name of findUnknownNames(description, sources)) {
    const message = `The description names ${JSON.stringify(name)}, and no webhook source has this name`
    warnings.push({ code: 'unknown_source_named', message, excerpt: name })
  }
  return rulesNeeded ? [...warnings, rulesNeeded] : warnings
}

/** What the built-in agent takes from a description. */
export interface ReadDescription<Source> {
  /** The webhook sources that it names, each once, in order of first appearance. */
  readonly named: readonly Source[]
  /** Why the built-in agent does not follow it; undefined if it can, and if it names no source. */
  readonly rulesNeeded: DescriptionWarning | undefined
}

/**
 * Reads the webhook sources to which a description sends, by a grammar that accounts for every word of it and of the
 * trigger's input message. Anything else needs rules. Case does not matter, and a line break can end a sentence.
 *
 *     description = [opening "."] {"Send|Forward|Post|Deliver" [object] "to" sources "."}
 *     sources     = SOURCE {("," | "and" | ", and" | ", then to") SOURCE}
 *     opening     = ("A|An|The [new] NOUN" | "New NOUN") "came in|comes in|arrived|arrives"
 *     object      = "it|this|everything" | "every|each|the|all|a|an" NOUN
 *     message     = "" | "New" | opening, also without the arrival, all also with a colon
 *
 * NOUN is one word, and everywhere the same: "Send every invoice to A. Send every order to B" is a choice. A SOURCE may
 * be in quotation marks, which tell it from names that are part of it.
 */
export function readDescription<Source extends { readonly name: string }>(
  description: string,
  sources: readonly Source[],
  inputMessage = '',
): ReadDescription<Source> {
  const reader = new DescriptionReader(description, sources)
  const problem = reader.read() ?? reader.readMessage(inputMessage)
  if (!problem) return { named: [...reader.named], rulesNeeded: undefined }
  const named = findNamedSources(description, sources)
  const [first] = named
  if (!first) return { named, rulesNeeded: undefined }
  const advice =
    problem.reason === AMBIGUOUS
      ? 'Put it in quotation marks, rename one of them, write a rules.yaml, or set a model'
      : `The built-in agent reads only sentences such as "Send it to ${first.name}.": write a rules.yaml, or set a model`
  const excerpt = truncateText(problem.sentence.trim(), 200)
  return { named, rulesNeeded: { code: 'rules_needed', message: `${problem.reason}. ${advice}`, excerpt } }
}

const AMBIGUOUS = 'The description has a name that can be several webhook sources'
const NOUN = String.raw`(?<noun>\p{sc=Latn}+)`
const WHAT = `(?:(?:an?|the)(?: new)?|new) ${NOUN}`
const ARRIVAL = ' (?:came in|comes in|arrived|arrives)'
const QUOTE = '["\u201C\u201D\u201E]'
const OPENING_QUOTE = new RegExp(QUOTE, 'uy')
const CLOSING_QUOTE = new RegExp(`\\.?${QUOTE}`, 'uy')
const OPENING = new RegExp(`${WHAT}${ARRIVAL} ?(?:\\.\\s?|\n|$)`, 'uy')
const OBJECT = `(?:it|this|(?<all>everything)|(?:every|each|the|all|an?) ${NOUN}) `
const SEND = new RegExp(`(?:send|forward|post|deliver) (?:${OBJECT})?to `, 'uy')
const NEXT_SOURCE = new RegExp(`${QUOTE}?(?:, then to |, and |, | and )`, 'uy')
/** The period can be that of a name ("Acme Inc."), or inside of quotation marks. */
const SENTENCE_END = new RegExp(`${QUOTE}? ?(?:\\.${QUOTE}?\\s?|\n|$)|(?<=\\.)\\s`, 'uy')
const MESSAGE = new RegExp(`^(?:${WHAT}(?:${ARRIVAL})?|new) ?[.:]?$`, 'u')
/** The grammar's own words are no NOUN: "Send all to A" and "Send the new to A" leave something out. */
const OWN_WORDS = new Set('a an all and came comes each every everything in it new send the then this to'.split(' '))
/** Names in a description. Reading one takes time in proportion to the different lengths of the sources' names. */
const MAX_NAMES = 1_000

class DescriptionReader<Source extends { readonly name: string }> {
  readonly named = new Set<Source>()
  readonly #text: string
  /** By folded name; undefined for a name that two sources have. */
  readonly #sources = new Map<string, Source | undefined>()
  readonly #lengths: readonly number[]
  #noun: string | undefined
  #names = 0
  #position = 0

  constructor(description: string, sources: readonly Source[]) {
    this.#text = squash(description)
    for (const source of sources) {
      const name = squash(source.name).toLowerCase()
      this.#sources.set(name, this.#sources.has(name) ? undefined : source)
    }
    this.#lengths = [...new Set(Array.from(this.#sources.keys(), (name) => name.length))]
  }

  /** The first sentence that is not the grammar's, and why; undefined if there is none. */
  read(): { reason: string; sentence: string } | undefined {
    const text = this.#text.toLowerCase()
    for (let start = 0; start < text.length; start = this.#position) {
      const opening = start === 0 ? this.#take(OPENING, text) : undefined
      const send = opening ?? this.#take(SEND, text)
      const unread = 'The description has a sentence that the built-in agent does not read'
      const reason = send ? (this.#checkNoun(send) ?? (opening ? undefined : this.#readSources(text))) : unread
      // A period inside of a word ends no sentence.
      if (reason !== undefined) return { reason, sentence: this.#text.slice(start).split(/(?<=\.)\s|\n/u, 1)[0] ?? '' }
    }
    return undefined
  }

  readMessage(inputMessage: string): { reason: string; sentence: string } | undefined {
    const text = squash(inputMessage)
    const found = MESSAGE.exec(text.toLowerCase())
    if (text === '') return undefined
    const unread = 'The input message of the trigger is neither empty nor such as "A new order:"'
    const reason = found ? this.#checkNoun(found, 'The description and the input message of the trigger name') : unread
    return reason === undefined ? undefined : { reason, sentence: text }
  }

  #checkNoun({ groups }: RegExpExecArray, texts = 'The description names'): string | undefined {
    const noun = groups?.['all'] ?? groups?.['noun']
    if (noun === undefined) return undefined
    if (!groups?.['all'] && OWN_WORDS.has(noun)) return `The description does not say what ${JSON.stringify(noun)} is`
    this.#noun ??= noun
    return this.#noun === noun ? undefined : `${texts} different things, ${this.#noun} and ${noun}`
  }

  /** Reads the names of a sentence and its end. */
  #readSources(text: string): string | undefined {
    do {
      const [first, second] = this.#findSources(text)
      this.#names += 1
      if (!first) return 'The description has a sentence that does not end with names of webhook sources alone'
      if (second || !first.source) return AMBIGUOUS
      if (this.#names > MAX_NAMES) return `The description has more than ${MAX_NAMES} names of webhook sources`
      this.named.add(first.source)
      this.#position = first.end
    } while (this.#take(NEXT_SOURCE, text))
    this.#take(SENTENCE_END, text)
    return undefined
  }

  /**
   * The sources whose names are here and followed by another name or the end of the sentence. After a quotation mark,
   * those that end at one: "A and B" is not A.
   */
  #findSources(text: string): { source: Source | undefined; end: number }[] {
    const start = this.#position
    const starts = testAt(OPENING_QUOTE, text, start) ? [start, start + 1] : [start]
    const ends = starts.flatMap((from) => this.#lengths.map((length) => ({ from, end: from + length })))
    const found = ends.flatMap(({ from, end }) => {
      const name = text.slice(from, end)
      const isName = this.#sources.has(name) && [NEXT_SOURCE, SENTENCE_END].some((next) => testAt(next, text, end))
      if (!isName) return []
      const isClosed = from === start || testAt(CLOSING_QUOTE, text, end)
      return [{ source: this.#sources.get(name), end, isClosed }]
    })
    const closed = found.filter(({ isClosed }) => isClosed)
    return closed.length > 0 ? closed : found
  }

  #take(pattern: RegExp, text: string): RegExpExecArray | undefined {
    pattern.lastIndex = this.#position
    const found = pattern.exec(text) ?? undefined
    this.#position += found?.[0].length ?? 0
    return found
  }
}

function testAt(pattern: RegExp, text: string, position: number): boolean {
  pattern.lastIndex = position
  return pattern.test(text)
}

/** Makes a run of white space one line break if it has one, else one space, and removes it at the ends. */
function squash(text: string): string {
  return normalizeText(text)
    .replace(/ \s+|[^\S ]\s*/gu, (space) => (/[\n\r\u0085\u2028\u2029]/u.test(space) ? '\n' : ' '))
    .trim()
}
