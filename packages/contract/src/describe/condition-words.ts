/**
 * The words that make a description more than "send the context to these sources" (contract README, "The built-in
 * agent"). The lists are deliberately wide: an instruction that is refused can be written as rules, while one that is
 * overlooked sends wrong data. English and German in depth; for other languages only the most frequent words.
 */

const CONDITIONS = String.raw`
  if, unless, only, except, excepting, whether, in case, in the case, in the event, provided, providing,
  assuming, as long as, so long as, depend, depends, depending, dependent, until, when, whenever,
  once (?:a|an|the|it|this|that|they|all|every|we|you), as soon as, subject to, conditional, conditionally,
  condition, where, wenn, falls, sofern, sobald, nur, außer, ausser, ausgenommen, es sei denn, solange,
  given that, should (?:the|it|there|an?), sollten? (?:der|die|das|es|eine?), im falle?, in an emergency, in emergencies,
  once (?:[a-z]{1,20} ){1,3}(?:is|are|has|have|was|were), looks? like, on (?:weekdays|weekends|mondays|holidays), (?:after|outside|during) (?:business|office|working|opening) hours,
  bei (?:reklamation|beschwerde|stornierung|rückfrage)(?:en)?,
  from (?:germany|austria|switzerland|france|italy|spain|japan|europe|abroad|overseas|the (?:us|usa|uk|eu)),
  aus (?:deutschland|österreich|europa|japan|dem ausland|der (?:schweiz|eu)),
  je nach, je nachdem, abhängig, abhaengig, ob, bis auf, vorausgesetzt, lediglich, ausschließlich, si, sauf,
  seulement, uniquement, quand, lorsque, sólo, solo si, excepto, salvo, cuando, quando, tranne, alleen,
  indien, tenzij, behalve,
  just, solely, merely, wait, waits, waiting, warte, warten, solo, solamente, approval, approvals, approve,
  approves, approved, freigabe, freigegeben, genehmigung, genehmigt,
  apart from, barring, aside from, save for, other than, abgesehen von, mit ausnahme, neukunden?, bestandskunden?,
  stammkunden?, privatkunden?, geschäftskunden?, firmenkunden?, großkunden?, new (?:customers|clients|users),
  every (?:other day|day|morning|evening|night|hour|week|month|monday|tuesday|wednesday|thursday|friday|saturday|sunday|weekday),
  per (?:day|week|hour|month|customer), (?:daily|weekly|monthly|hourly)(?=\s*(?:at|to|[.!;\uE000]|$)), once a (?:day|week|month), at (?:noon|midnight|night),
  täglich, wöchentlich, monatlich, stündlich, jeden (?:tag|morgen|abend|montag|dienstag|mittwoch|donnerstag|freitag),
  first (?:one|item|line|row|entry|position), last (?:one|two|three|few|item|line|row|entry|orders?|messages?)`

const NEGATIONS = String.raw`
  skipping, omitting, ignoring, leaving out, minus, not, cannot, never, no(?!\.), none, nothing, nobody, neither, nor, without, exclude, excludes, excluding,
  excluded, omit, skip, ignore, avoid, stop, refuse, reject, other than, rather, dont, doesnt, wont, cant,
  hold back, withhold, leave out, drop, discard, forbidden, nicht, nichts, nie, niemals, kein, keine, keinen,
  keinem, keiner, keines, keinesfalls, ohne, ignoriere, ignorieren, überspringe, überspringen, weder,
  auslassen, weglassen, ne, pas, jamais, aucun, aucune, sans, nunca, ningún, sin, non, senza, niet, geen,
  hold (?:\S{1,30} ){0,3}back, refrain, refrains, keep (?:\S{1,30} ){1,3}from, prevent, prevents, abstain, unterlasse,
  formerly, previously, used to, no longer, until now, früher, bisher, nicht mehr, leave (?:\S{1,30} ){1,4}(?:empty|blank|out),
  lasse? (?:\S{1,30} ){1,4}(?:leer|weg),
  dropped, skipped, ignored, omitted, withheld, suppressed, rejected, refused`

const CHOICES = `
  or, either, otherwise, else, instead, alternatively, whichever, whatever, which, but, others, the other,
  all other, any other, every other, the rest, remaining, everything else, decide, decides, choose, chooses,
  pick, select, appropriate, suitable, right one, best fit, respective, respectively, matching, relevant,
  one of, and/or, as needed, if needed, optionally, oder, entweder, sonst, ansonsten, andernfalls,
  anderenfalls, stattdessen, statt, anstatt, aber, sondern, alle anderen, alles andere, den rest, der rest,
  die übrigen, übrige, entscheide, wähle, jeweils, jeweilige, jeweiligen, passende, passenden, zuständige,
  zuständigen, welche, welcher, ou, sinon, sino, o bien, oppure, altrimenti, anders,
  (?:right|correct|responsible) (?:team|person|people|department|desk|queue|channel|source|system|recipient),
  richtige, richtigen`

/** Comparisons with a number, such as "orders over 100 EUR". */
const COMPARISON =
  /(?:\b(?:over|above|below|under|exceeds?|exceeding|beyond|more than|less than|greater than|larger than|smaller than|higher than|lower than|fewer than|at least|at most|minimum|maximum|up to|between|from|starting at|equals?|equal to|mehr als|weniger als|größer als|kleiner als|höher als|niedriger als|mindestens|höchstens|unter|ab|bis|zwischen)|über|[<>≤≥=])\s{0,3}(?:(?:of|von|a|an|total|the|usd|eur|gbp|euro)\s{1,3}){0,2}[$€£¥]?\s{0,2}\d|\d\s{0,3}(?:%|€|\$|eur|usd|euro)?\s{0,2}(?:or more|or less|and more|or above|and above|or over|and over|or below|and up|oder mehr|und mehr|oder weniger)\b/u

/** Comparisons with a number in words, such as "over one thousand euros". */
const COMPARISON_IN_WORDS =
  /(?<![\p{L}\p{N}_])(?:over|above|below|under|beyond|exceeds?|exceeding|than|at least|at most|up to|über|unter|ab|als|mindestens|höchstens)\s{1,3}(?:\p{L}{1,20}\s{1,3}){0,2}\p{L}{0,20}(?:hundred|thousand|million|hundert|tausend)/u

/** Words that qualify which things are meant, when another word follows: "urgent tickets". */
const QUALIFIERS = `
  genuine, urgent, critical, important, severe, high priority, low priority, high-priority, low-priority, high-value,
  vip, large, big, small, overdue, unpaid, suspicious, angry, unhappy, defective, damaged, broken, expensive,
  cheap, international, domestic, qualified, unqualified, hot, cold, serious, minor, dringende, dringenden,
  wichtige, wichtigen, kritische, kritischen, große, großen, kleine, eilige, eiligen, überfällige,
  überfälligen, unbezahlte, unbezahlten, offene, offenen, verärgerte, test,
  existing, returning, premium, foreign, european, german, austrian, swiss, french, british, american, weekend,
  cheapest, highest, lowest, latest, newest, oldest, largest, biggest, smallest, best, worst`

/** A word that says which things are meant: "paid orders", "larger orders", "bezahlte Bestellungen". */
const KIND_OF_THINGS =
  /(?<![\p{L}\p{N}_])(?!(?:received|purchased?|completed form|need(?:ed)?|send|forward|speed|shipped|dispatched|placed|submitted|created|registered|scanned|uploaded|recorded|attached|forwarded|detected)\s)(?:[a-z]{2,20}(?:ed|aid|gger|ller|rger|ier|gest|est|able|ful|ive|ous|less)|paid|free|late|new and paid|open|closed|old|lost|high|low|rush|express|local|spanish|italian|dutch|american)\s{1,3}(?:(?:web|online|customer|sales|support)\s{1,3})?(?:orders|invoices|tickets|leads|messages|requests|emails|e-mails|mails|contacts|customers|inquiries|enquiries|bookings|registrations|reservations|submissions|payments|alerts|issues|complaints|clients|deals)(?![\p{L}\p{N}_])|(?<![\p{L}\p{N}_])(?!(?:neue|eingehende|eingegangene|versendete|versandte|aufgegebene|erfasste|die|alle|jede|eine|diese|ihre|unsere|meine|erhaltene|weitere|bitte|leite|sende|schicke|übergebe|trage)n?\s)\p{L}{3,20}(?:te|ten|ene|enen|ige|igen|sche|schen|liche|lichen)\s{1,3}(?:bestellungen|rechnungen|anfragen|tickets|nachrichten|leads|aufträge|kunden|meldungen|buchungen|reservierungen|anmeldungen|kontakte)(?![\p{L}\p{N}_])|(?:orders|invoices|tickets|leads|messages|requests|bookings|registrations|payments)\s{1,3}(?:that\s{1,3}(?:are|is|were|was|have|has)\s{1,3}(?!(?:been\s)?(?:received|placed|submitted|created|sent|made)(?!\p{L}))|(?:marked|flagged|tagged|labell?ed)\s)|(?<![\p{L}\p{N}_])(?:orders|invoices|tickets|leads|messages|requests|contacts|customers|bookings|registrations|reservations|payments|bestellungen|rechnungen|anfragen|nachrichten|aufträge|kunden|buchungen)\s{1,3}(?:with|mit)\s{1,3}(?:an?|any|some|several|multiple|missing|eine[mnrs]?|ein|mehreren|fehlende[mnr]?)\s|\d\s{0,2}%/u

/** Work on the values, which needs understanding: the built-in agent only copies what the context names. */
const JUDGEMENTS = String.raw`
  summarize, summarise, summarizing, summarising, condense, shorten, translate, translated, rewrite,
  rephrase, paraphrase, classify, categorize, categorise, prioritize, prioritise, judge, assess, evaluate,
  estimate, detect, determine, infer, deduce, guess, calculate, compute, multiply, divide, subtract, sum up,
  add up, convert, look up, lookup, compare, verify, draft, compose, reply to, in your own words,
  one sentence, analyze, analyse, sentiment, twice, merge, combine, deduplicate, split, separately,
  individually, retry, try again, two times, rate the, rate each, rate it, score the, score each, rank the,
  round the, round up, round it, each item, each line, each position, each product, each article, each row,
  each entry, every item, every line, every product, every row, per item, per line, per product, per row,
  for each, one per, fasse, zusammenfassen, zusammengefasst, zusammenfassung, übersetze, übersetzen, bewerte,
  bewerten, beurteile, schätze, berechne, berechnen, rechne, umrechnen, runde, multipliziere, klassifiziere,
  kategorisiere, priorisiere, vergleiche, prüfe, prüfen, ermittle, formuliere, einzeln, zweimal,
  jede position, jede zeile, jeden artikel, je position, pro position, pro artikel, pro zeile,
  anonymise, anonymize, anonymised, anonymized, pseudonymise, pseudonymize, redact, mask, remove, strip, replace,
  collect, batch, aggregate, group, sort, filter, key points, main points, highlights, enrich, add (?:the )?(?:vat|tax),
  extrahiere, anonymisiere, entferne, ersetze, sammle, gruppiere, sortiere, filtere, ergänze, use \S{1,30} as,
  doubled, halved, tripled, verdoppelt, halbiert, (?:the )?sum of, (?:a|short|brief) summary, mood, tone, corrected,
  cleaned, clean up, rounded, normalized, capitalized, uppercase, lowercase, capital letters, korrigiert,
  map (?:the|each|every|it), make sure, ensure, ensures, check, checks, confirm that, stelle sicher, sicherstellen,
  fill in (?:\S{1,30} ){1,4}from,
  write (?:a|an) (?:\S{1,30} )?(?:subject|summary|reply|answer|text|title|note|sentence|response),
  (?:one|an?|eine?n?) (?:\S{1,30} ){1,4}(?:per|pro|je)`

/** A value that the description gives: "set the priority to high", "use the channel #support". */
const FIXED_VALUE =
  /\b(?:set|setze)\b[^.]{1,60}\b(?:to|as|auf)\b|\bwith (?:the )?(?:\w{1,20} ){1,2}(?:set to|equal to) |\buse (?:the )?(?:channel|priority|status|value|language|currency)\b|#\w|\bwith (?:priority|status|quantity|category) [\p{L}\d]|\b(?:today's|current) date\b|\bwith (?:vat|tax|discount) |\bput ["“'„]|,\s?subject ["“'„]|\b(?:send|write) an? (?:friendly|polite|short|personal|nice) |(?:^|[,;:]\s?|\band\s|\bthen\s|\bund\s)(?:set|setze|mark|label|flag|tag|prefix|append)\s|\([^()]{1,80}\bfor\b[^()]{0,80}\)/u

/** Values that are elsewhere, or in another unit: "the price in the file prices.csv", "in cents". */
const ELSEWHERE =
  /(?<![\p{L}\p{N}_])(?:(?:the|a|this|attached|in|from|of|to) files?|attachments?|datei|anhang|according to|based on|follows? from|derived? from|depending on|laut|gemäß|previous runs?|last time|earlier runs?|(?:in|as) (?:cents?|pence|rappen|minor units)|in (?:usd|eur|gbp|chf|euros?|dollars|english|german|french|spanish|upper case|lower case|capitals))(?![\p{L}\p{N}_])|[\p{L}\p{N}_]\.(?:md|txt|csv|json|ya?ml|pdf|xlsx?|docx?)(?![\p{L}\p{N}_])/u

const JAPANESE =
  /各行|行ごと|件ごと|ずつ|もし|場合|以外|除い|除く|のみ|だけ|ならば|なら|たら|れば|または|あるいは|もしくは|いずれか|どちらか|それ以外|ただし|でなければ|しない|せず|らず|ずに|ないで|なく|ません|禁止|以上|以下|未満|超え|超過|とき|時は|要約|翻訳|計算|判断|分類|高額|海外|(?:支払済み?|支払い済み|未払い?|緊急|至急|重要|大口|高額)の/u

const CHINESE = /如果|若是|假如|除非|除了|否则|或者|还是|不要|仅|只有|只在|当[^\s。]{1,30}时|超过|低于|总结|翻译/u

const KOREAN = /만약|경우|아니면|않|제외|또는|하지\s?마/u

/** Kinds of words, with the name that the warning gives them. */
const KINDS: readonly { readonly kind: string; readonly pattern: RegExp }[] = [
  { kind: 'a condition', pattern: words(CONDITIONS) },
  { kind: 'a condition', pattern: COMPARISON },
  { kind: 'a condition', pattern: COMPARISON_IN_WORDS },
  { kind: 'a negation', pattern: words(`${NEGATIONS}, [a-z]{2,9}n't`) },
  { kind: 'a choice', pattern: words(CHOICES) },
  { kind: 'a condition', pattern: words(QUALIFIERS, String.raw`\s{1,3}(?!(?:to|and|the|in|on|for|an|und)\s)\p{L}`) },
  { kind: 'a condition', pattern: KIND_OF_THINGS },
  { kind: 'work on the values', pattern: words(JUDGEMENTS) },
  { kind: 'a fixed value', pattern: FIXED_VALUE },
  { kind: 'a value from elsewhere', pattern: ELSEWHERE },
  { kind: 'a condition', pattern: JAPANESE },
  { kind: 'a condition', pattern: CHINESE },
  { kind: 'a condition', pattern: KOREAN },
]

/** The first words of the lower-case sentence that ask for more than sending the context, and their kind. */
export function findInstruction(sentence: string): { kind: string; word: string } | undefined {
  for (const { kind, pattern } of KINDS) {
    const found = pattern.exec(sentence)
    if (found) return { kind, word: withWholeWords(sentence, found.index, found.index + found[0].length) }
  }
  return undefined
}

/** Characters of a word or number beyond a match, whose pattern may need only the first one of them. */
const WORD_MAX_LENGTH = 30
const REST_OF_WORD = /^(?:[.,]?[\p{Script=Latin}\p{M}\p{Nd}_])*/u
const BEGIN_OF_NUMBER = /(?:\p{Nd}[.,]?)*$/u

/** The part of the sentence, with the rest of the number or word at its ends: "at least 250" where "at least 2" was found. */
function withWholeWords(sentence: string, start: number, end: number): string {
  const part = sentence.slice(start, end)
  const before = /^\p{Nd}/u.test(part)
    ? BEGIN_OF_NUMBER.exec(sentence.slice(Math.max(0, start - WORD_MAX_LENGTH), start))
    : null
  const after = /[\p{Script=Latin}\p{Nd}]$/u.test(part)
    ? REST_OF_WORD.exec(sentence.slice(end, end + WORD_MAX_LENGTH))
    : null
  return `${before?.[0] ?? ''}${part}${after?.[0] ?? ''}`.trim()
}

/** A pattern for any of the words, which are separated by commas. */
function words(list: string, after = String.raw`(?![\p{L}\p{M}\p{N}_])`): RegExp {
  const alternatives = list
    .trim()
    .split(/,\s+/u)
    .join('|')
    .replaceAll(' ', String.raw`\s{1,3}`)
  return new RegExp(String.raw`(?<![\p{L}\p{M}\p{N}_])(?:${alternatives})${after}`, 'u')
}
