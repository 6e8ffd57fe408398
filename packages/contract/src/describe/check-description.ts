import { findUnknownNames, locateNamedSources, normalizeText } from '../named-sources.ts'
import { truncateText } from '../schema/text.ts'
import { findInstruction } from './condition-words.ts'

/** A reason why runs of a workflow may not do what its description says. */
export interface DescriptionWarning {
  /**
   * - `no_source_named`: no webhook source gets a payload.
   * - `unknown_source_named`: a text in quotation marks names no webhook source.
   * - `rules_needed`: the built-in agent fails each run, because the description holds more than "send it there".
   */
  readonly code: 'no_source_named' | 'unknown_source_named' | 'rules_needed'
  /** For people, without a period at the end. */
  readonly message: string
  /** The unknown name, or the sentence that holds a condition, shortened; empty for `no_source_named`. */
  readonly excerpt: string
}

/** In place of a source's name, whose words are no instructions ("Only Fans", "Big deals or not"). */
const NAME = '\uE000'

const EXCERPT_MAX_LENGTH = 200

/**
 * Checks a workflow's description as the built-in agent reads it (contract README, "The built-in agent"). Returns warnings
 * in the order of their codes above; none if the agent can follow the description. Takes time in proportion to the
 * description and the names together.
 */
export function checkDescription(
  description: string,
  sources: readonly { readonly name: string }[],
): DescriptionWarning[] {
  const { named, rulesNeeded } = readDescription(description, sources)
  const warnings: DescriptionWarning[] = []
  if (named.length === 0) {
    const message =
      sources.length === 0
        ? 'The organization has no webhook source, so nothing is sent'
        : "The description names none of the organization's webhook sources, so nothing is sent"
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
  /** The webhook sources that it names, in order of first appearance. */
  readonly named: readonly Source[]
  /** Why the built-in agent does not follow it; undefined if it names no source. */
  readonly rulesNeeded: DescriptionWarning | undefined
}

/**
 * Reads which webhook sources a description names, and whether it holds more than the built-in agent understands.
 *
 * A description that names a source may hold no condition, negation or choice, nor work on the values, in any sentence:
 * "Orders over 100 are special. Send these to Big deals" spreads a condition over two sentences. The same applies to the
 * trigger's input message. Sentences that only say that something arrives ("When an order comes in, …"), or that nothing
 * may be invented, do not count.
 */
export function readDescription<Source extends { readonly name: string }>(
  description: string,
  sources: readonly Source[],
  inputMessage = '',
): ReadDescription<Source> {
  const located = locateNamedSources(`${description}\n${inputMessage}`, sources)
  const { text } = located
  const mentions = leaveOutArriving(text, leaveOutAddresses(text, located.mentions))
  const end = text.length - normalizeText(inputMessage).length
  const named = [...new Set(mentions.filter(({ start }) => start < end).map(({ source }) => source))]
  const found = named.length === 0 ? undefined : findRulesNeeded(text, mentions)
  if (!found) return { named, rulesNeeded: undefined }
  const message = `The description holds ${found.kind} (${JSON.stringify(found.word)}), which the built-in agent does not interpret. Write a rules.yaml, or set a model`
  const excerpt = truncateText(found.sentence, EXCERPT_MAX_LENGTH)
  return { named, rulesNeeded: { code: 'rules_needed', message, excerpt } }
}

interface Found {
  readonly kind: string
  readonly word: string
  readonly sentence: string
}

function findRulesNeeded(
  text: string,
  mentions: readonly { source: { readonly name: string }; start: number; end: number }[],
): Found | undefined {
  const sentences = splitSentences(text, mentions)
  const arriving = new Set<string>()
  for (const { original, masked, cased } of sentences) {
    const plain = removeArrivals(masked, arriving).replace(SOON, ' ').trim()
    const found = isHarmless(plain) ? undefined : (findInstruction(plain) ?? findAnswer(plain) ?? findOtherName(cased))
    if (found) return { ...found, sentence: original }
  }
  // "When an invoice arrives, send it to A. When an order arrives, send it to B."
  const [first] = sentences
  if (first && arriving.size > 1) return { kind: 'a choice', word: [...arriving].join(' / '), sentence: first.original }
  if (new Set(mentions.map(({ source }) => source)).size > 1) return findRouting(sentences)
  return undefined
}

interface Sentence {
  readonly original: string
  /** In lower case, with NAME for each name of a source. */
  readonly masked: string
  /** The same as it was written. */
  readonly cased: string
}

/** The end of a sentence, or a line. A period inside a number, or after a word such as "no", ends none. */
const SENTENCE_END = /(?<!\b(?:no|nr|e\.g|i\.e|z\.b|etc|approx|incl|vs))[.!?;](?=\s|$)|[。！？；\n]/gu

function splitSentences(text: string, mentions: readonly { start: number; end: number }[]): Sentence[] {
  let masked = ''
  /** Where each part of the masked text begins in the original one: ends of sentences are searched in the masked text. */
  const parts: { masked: number; original: number }[] = [{ masked: 0, original: 0 }]
  let from = 0
  for (const { start, end } of mentions) {
    masked += text.slice(from, start).replaceAll(NAME, ' ') + NAME
    parts.push({ masked: masked.length, original: end })
    from = end
  }
  masked += text.slice(from).replaceAll(NAME, ' ')

  const sentences: Sentence[] = []
  let part = 0
  let begin = 0
  let originalBegin = 0
  for (const end of [...masked.matchAll(SENTENCE_END)].map(({ index }) => index + 1).concat(masked.length)) {
    while ((parts[part + 1]?.masked ?? Infinity) <= end) part += 1
    const originalEnd = (parts[part]?.original ?? 0) + end - (parts[part]?.masked ?? 0)
    const original = text.slice(originalBegin, originalEnd).trim()
    if (original !== '') {
      const cased = masked.slice(begin, end).replaceAll('’', "'")
      sentences.push({ original, masked: cased.toLowerCase(), cased })
    }
    begin = end
    originalBegin = originalEnd
  }
  return sentences
}

const THINGS =
  'orders?|invoices?|tickets?|leads?|messages?|requests?|e-?mails?|mails?|forms?|contacts?|customers?|inquir(?:y|ies)|enquir(?:y|ies)|bookings?|registrations?|reservations?|submissions?|events?|notifications?|reports?|payments?|alerts?|issues?'

/** "When a new order comes in": it says when the workflow starts, and each of its starts is one. */
const ARRIVAL = new RegExp(
  [
    String.raw`(?<![\p{L}\p{N}_])(?:when(?:ever)?|once|as soon as|each time|every time)\s{1,3}(?:(?:a|an|the|any|each|every|some)\s{1,3})?(?:(?:new|next|incoming|support|sales|purchase|web|online|customer|contact)\s{1,3}){0,2}(?<en>${THINGS})\s{1,3}(?:(?:comes?|came|gets?|has|have|is|are|was|were|been|being)\s{1,3}){0,2}(?:in|arrives?|arrived|received|placed|created|submitted|registered|opened|sent|come in)(?![\p{L}\p{N}_])`,
    String.raw`(?<![\p{L}\p{N}_])for (?:each|every) (?:(?:new|incoming) )?(?<each>${THINGS})(?![\p{L}\p{N}_])`,
    String.raw`(?<![\p{L}\p{N}_])(?:wenn|sobald)\s{1,3}(?:eine?|der|die|das|jede[rs]?)\s{1,3}(?:neue[rs]?\s{1,3})?(?<de>bestellung|rechnung|anfrage|ticket|nachricht|lead|auftrag|e-?mail|kontakt|meldung|buchung|reservierung|anmeldung)\s{1,3}(?:eingeht|ankommt|eintrifft|hereinkommt|reinkommt|kommt|eingegangen ist|erstellt wird)(?![\p{L}\p{N}_])`,
    '(?<ja>注文|問い合わせ|お問い合わせ|請求書|チケット|メール|リード|予約)(?:が|を)(?:届いたら|来たら|入ったら|受け取ったら|受信したら|受けたら|届いた場合|届いたとき|来たとき)',
  ].join('|'),
  'gu',
)

/** Leaves out names in "When a new order comes in", where "order" is what arrives and not the source "Order". */
function leaveOutArriving<Mention extends { readonly start: number; readonly end: number }>(
  text: string,
  mentions: readonly Mention[],
): Mention[] {
  const lower = text.toLowerCase()
  // Some characters have another length in lower case, which moves the positions.
  if (lower.length !== text.length) return [...mentions]
  const clauses = [...lower.matchAll(ARRIVAL)].map(({ 0: clause, index }) => ({
    start: index,
    end: index + clause.length,
  }))
  let next = 0
  return mentions.filter(({ start, end }) => {
    while ((clauses[next]?.end ?? Infinity) <= start) next += 1
    const clause = clauses[next]
    return !clause || start < clause.start || end > clause.end
  })
}

/** A URL or an email address. Characters outside ASCII end it, since Japanese has no spaces. */
const ADDRESS = /(?:https?:\/\/|www\.)[!#-&*-;=?-~]+|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+/giu

/** Leaves out names inside a URL or an email address, which name no source; a source can have the whole as its name. */
function leaveOutAddresses<Mention extends { readonly start: number; readonly end: number }>(
  text: string,
  mentions: readonly Mention[],
): Mention[] {
  const addresses = [...text.matchAll(ADDRESS)].map(({ 0: address, index }) => ({
    start: index,
    end: index + address.length,
  }))
  let next = 0
  return mentions.filter(({ start, end }) => {
    while ((addresses[next]?.end ?? Infinity) <= start) next += 1
    const address = addresses[next]
    return !address || end <= address.start || (start <= address.start && end >= address.end - 1)
  })
}

/** How soon to send, which is no condition. */
const SOON =
  /(?<![\p{L}\p{N}_])(?:as soon as possible|so bald wie möglich|sobald wie möglich|sobald es geht)(?![\p{L}\p{N}_])/gu

/** Removes the clauses that say that something arrives, and adds what arrives to `arriving`. */
function removeArrivals(sentence: string, arriving: Set<string>): string {
  return sentence.replace(ARRIVAL, (...match) => {
    const { en, each, de, ja } = match.at(-1) as Record<string, string | undefined>
    arriving.add((en ?? each ?? de ?? ja ?? '').replace(/s$/u, ''))
    return ' '
  })
}

/** Sentences that ask for what the built-in agent does anyway, or say whom people can ask. They name no source and no other action. */
const HARMLESS = [
  /^(?:if|when) (?:you have|there are|anyone has|someone has) (?:any )?(?:questions?|doubts?|problems?|trouble)(?: [\p{L}' ]{1,60})?,? (?:please )?(?:ask|contact|call|write to|talk to|email) [\p{L}'.@ -]{1,60}[.!]?$/u,
  /^(?:bei (?:rück)?fragen|(?:wenn|falls) (?:du|sie|ihr) fragen (?:hast|haben|habt))[\p{L}', ]{0,80}[.!]?$/u,
  /^(?:please )?(?:never|do not|don't|dont) (?:invent|make up|guess|change|alter|modify|edit)(?: (?:or (?:invent|guess|change|make up)|any|the|a|anything|values?|data|fields?|details?|numbers?|it|them|of|text|original))*[.!]?$/u,
  /^(?:bitte )?(?:nichts|keine (?:werte|daten|angaben|felder)) (?:erfinden|ändern|verändern)[.!]?$/u,
  /^(?:if|when|where) (?:a|any|the|one of the) (?:field|value|detail)s? (?:is|are) (?:missing|absent|not (?:given|known|mentioned|present)),? (?:leave|keep) (?:it|them|the field) (?:empty|blank)[.!]?$/u,
]

function isHarmless(sentence: string): boolean {
  return sentence.length < 200 && HARMLESS.some((pattern) => pattern.test(sentence))
}

/** "The number that Billing returns", "which Helpdesk answers with": the answer of one source is a value for another. */
const ANSWER = new RegExp(
  String.raw`(?<![\p{L}\p{N}_])(?:from|aus|von)\s{1,3}(?:the\s|der\s|dem\s)?["'„“]?${NAME}|(?<![\p{L}\p{N}_])(?:that|which|die|das|den)\s{1,3}${NAME}\s{1,3}\p{L}|(?:answer|response|reply|result|antwort|ergebnis)\s{1,3}(?:of|from|by|von)\s{1,3}${NAME}|${NAME}(?:'s)?\s{1,3}(?:answers?|answered|returns?|returned|replies|responds?|response|antwortet|zurückgibt|liefert)(?![\p{L}\p{N}_])`,
  'u',
)

function findAnswer(sentence: string): { kind: string; word: string } | undefined {
  const found = ANSWER.exec(sentence)
  return found ? { kind: 'a value from elsewhere', word: toWord(found[0]) } : undefined
}

function toWord(masked: string): string {
  return masked.replaceAll(NAME, '…').trim()
}

const ENGLISH = /(?<!\p{L})(?:the|to|every|each|all|and|of|from|our|new)(?!\p{L})/iu
const GERMAN =
  /(?<!\p{L})(?:der|die|das|den|dem|an|und|alle|jede[rnsm]?|neue[rnsm]?|bitte|sende|schicke|leite)(?!\p{L})/iu
const OTHER_NAME = /(?<![\p{L}])(?:our|in) (\p{Lu}\p{Ll}{2,})(?= \p{Ll}|[.,;]|$)/u

/** "The sick notes of our Hamburg office": in English, a name with a capital letter says which ones. */
function findOtherName(sentence: string): { kind: string; word: string } | undefined {
  if (!sentence.includes(NAME) || !ENGLISH.test(sentence) || GERMAN.test(sentence)) return undefined
  const found = OTHER_NAME.exec(sentence)
  return found ? { kind: 'a name', word: found[1] ?? '' } : undefined
}

/** Words for kinds of things without an article: "invoices to Billing, orders to Order intake". */
const KIND_WORDS = String.raw`everything|anything|alles|[a-z]{3,20}(?<!s)s|[a-zäöüß]{3,20}(?:ungen|agen|ionen|aden|träge|kete)`

const BARE_KIND = new RegExp(
  String.raw`(?<![\p{L}\p{N}_])(?<!(?:the|this|that|these|those|all|each|every|its|their|his|her|our|any|a|an|as|is|was|has|die|der|das|alle|jede|diese)\s)(?:${KIND_WORDS})(?![\p{L}\p{N}_'])`,
  'gu',
)

/** Plural-looking words that name no kind of thing. */
const NO_KIND = new Set(
  `goes sends posts forwards comes arrives gets takes needs wants always as has details values fields data lines items contents this thus plus yes its receives passes delivers writes notifies informs copies afterwards towards besides does`.split(
    ' ',
  ),
)

const GOES = String.raw`(?<![\p{L}\p{N}_])(?:go|goes|belongs?|gehen|geht|gehört|gehören)\s{1,3}(?:to|an|ans|zu|zum|zur|in)\s[^${NAME}]{0,20}${NAME}`
const TO = String.raw`(?:to|an|ans|in)\s{1,3}(?:the\s|die\s|das\s)?["'„“]?`

/** "A goes to X, B goes to Y", "Inform X about A and Y about B", "cancellations to Cancellations", "AはXへ、BはYへ". */
const ROUTES = new RegExp(
  [
    String.raw`${GOES}(?:(?!\b(?:it|copy|also|too|auch|kopie)\b)[^${NAME}]){1,80}${GOES}`,
    String.raw`${NAME}\s(?:about|of|on|über)\s[^${NAME}]{1,80}${NAME}\s(?:about|of|on|über)\s`,
    String.raw`${NAME}\s{1,3}(?:(?:go|goes|gehen|geht)\s{1,3})?${TO}${NAME}`,
    String.raw`は「?${NAME}」?(?:へ|に)[^${NAME}]{1,80}は「?${NAME}」?(?:へ|に)`,
  ].join('|'),
  'u',
)

/** Finds different kinds of things for different sources: the text before each source names other kinds than before another. */
function findRouting(sentences: readonly Sentence[]): Found | undefined {
  for (const { original, masked } of sentences) {
    const found = ROUTES.exec(masked)
    if (found) return { kind: 'a choice', word: toWord(found[0]), sentence: original }
  }
  let previous: string | undefined
  for (const { original, masked } of sentences) {
    for (const clause of masked.split(NAME).slice(0, -1)) {
      const kinds = [...clause.slice(-300).matchAll(BARE_KIND)]
        .map(([word]) => word)
        .filter((word) => !NO_KIND.has(word))
      if (kinds.length === 0) continue
      const words = clause.match(/\p{L}{4,}/gu)?.join(' ') ?? ''
      if (previous !== undefined && previous !== words) {
        return { kind: 'a choice', word: kinds[0] ?? '', sentence: original }
      }
      previous = words
    }
  }
  return findReversedOrder(sentences)
}

/** "Send to A after B", "before B, send to A": the order of appearance is not the order that is meant. */
function findReversedOrder(sentences: readonly Sentence[]): Found | undefined {
  const pattern = new RegExp(
    String.raw`(?<![\p{L}\p{N}_])(?:before(?:hand)?|but first|previously|bevor|vorher|zuvor|davor)(?![\p{L}\p{N}_])|${NAME}[^${NAME}]{0,60}(?<![\p{L}\p{N}_])(?:after|nach|nachdem)\s(?:the\s|that\s|dem\s|der\s)?["'„“]?${NAME}|の前に|前に`,
    'u',
  )
  for (const { original, masked } of sentences) {
    const found = pattern.exec(masked)
    if (found) return { kind: 'an order of its own', word: toWord(found[0]), sentence: original }
  }
  return undefined
}
