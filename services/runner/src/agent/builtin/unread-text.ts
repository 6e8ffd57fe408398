import type { KnownNames } from './context-value.ts'
import { toWords } from './name-words.ts'

/** Words of a text that corrects itself. What a text says outside its values is not understood, so it must not matter. */
const CORRECTION =
  /(?<![\p{L}\p{N}])(?:rejected|declined|abgelehnt|abgesagt|oops|whoops|ups|wait|hold (?:it|on|off|this|that)|edit:|i meant?|we meant|meant to|changed (?:my|our) minds?|new (?:quantity|amount|total|address|date|price|number)|also (?:add|need|send|want|order|include)|(?:one|two|three|\d+) more|void|withdraw|withdrawn|obsolete|outdated|superseded?|out of date|no longer valid|(?:do|does|did) not|don['’]t|doesn['’]t|never mind|only a test|a test|in (?:thousands?|millions?|cents?)|(?:thousands?|millions?) of|in (?:tausend|tsd|teur|mio)|ich meinte?|wir meinten|gemeint|erledigt|hinfällig|aber|statt|anstatt|vergessen sie|vergiss|(?<!anweisungen sind )ungültig|veraltet|verschoben|vorgezogen|verlegt|moved|postponed|rescheduled|brought forward|pushed back|zurückgezogen|ziehe[n]? .{0,40}zurück|(?:bitte |sondern )?nicht|kein(?:e[nmrs]?)?|nur ein test|correction|corrected|correcting|sorry|actually|instead|should (?:be|have been|read)|typo|addendum|p\.?s\.?:|mistake|mistaken|wrong|incorrect|(?:ignore|disregard)(?!.{0,30} (?:instruction|rule|prompt))|cancel|cancels|cancelled|canceled|cancellation|changed? (?:it|that|the|to|my)|change of|update:|updated|revised|not anymore|no longer|scratch that|make (?:it|that)|rather than|nachtrag|erhöhen|verringern|reduzieren|korrektur|korrigiert|korrigiere|berichtigung|berichtigt|stattdessen|doch (?:nicht|nur|lieber)|stornier\p{L}{0,5}|storno|irrtum|irrtümlich|versehentlich|falsch|nicht mehr|ändern|geändert|änderung|tippfehler|entschuldig\p{L}{0,6})(?![\p{L}\p{N}])|やっぱり|やはり|ではありません|しないで|不要|無効|追加|テスト|訂正|修正|変更|延期|追伸|取消|取り消|キャンセル|間違|誤り|ではなく/iu

/** Sentences that take nothing back: an apology, the footer of an automatic mail, a disclaimer. */
const HARMLESS = new RegExp(
  [
    String.raw`(?<!\p{L})(?:sorry|apologies) for (?:the |my |our )?(?:late|delayed|slow) (?:reply|response|answer)(?!\p{L})`,
    String.raw`(?<!\p{L})entschuldigung für die (?:späte|verspätete) (?:antwort|rückmeldung)(?!\p{L})`,
    String.raw`(?<!\p{L})(?:do not|don['’]t) (?:reply|respond|answer)(?! (?:with|until|if|unless))(?!\p{L})[^.\n]{0,60}`,
    String.raw`(?<!\p{L})(?:do not|don['’]t) (?:print|copy|distribute|disclose) (?:this|it|the)(?!\p{L})[^.\n]{0,80}`,
    String.raw`(?<!\p{L})(?:unless you are the (?:addressee|(?:intended )?recipient)|if you (?:(?:are|were) not the (?:intended )?(?:recipient|addressee)|(?:have )?received? (?:this|it)(?: \p{L}+){0,2} (?:in error|by mistake)))(?!\p{L})[^.\n]{0,120}`,
    String.raw`(?<!\p{L})one more \p{L}+(?= (?:that|which|who|from|for|we|i)(?!\p{L}))`,
    String.raw`(?<!\p{L})(?:if you )?(?:no longer|(?:do not|don['’]t)) (?:wish|want) to (?:receive|get) (?:these|such|our|this)(?!\p{L})[^.\n]{0,80}`,
    String.raw`(?<!\p{L})if you (?:did not|didn['’]t) (?:place|make|request|order|sign up|submit|create)(?!\p{L})[^.\n]{0,120}`,
    String.raw`(?<!\p{L})(?:you (?:can|may)|to|want to|need to) (?:also )?(?:change|cancel|modify|edit|update|manage)(?: or (?:change|cancel|modify|edit))? (?:your|this|the) (?:order|booking|reservation|registration|subscription|appointment|preferences|settings|notification)[^.\n]{0,100}`,
    String.raw`(?<!\p{L})(?:free )?cancellation (?:policy|terms|deadline|fees?|is free|is possible|until|up to)(?!\p{L})[^.\n]{0,100}`,
    String.raw`(?<!\p{L})(?:kostenlos stornierbar|kostenlose stornierung|storno(?:bedingungen|gebühr|frist)|stornierungsbedingungen)(?!\p{L})[^.\n]{0,100}`,
    String.raw`(?<!\p{L})(?:last )?(?:updated|modified|changed)(?:[ _](?:at|on))?\s{0,3}[:：]\s{0,3}[\d./:+\-TZ ]{6,40}$`,
    String.raw`(?<!\p{L})sie können (?:ihre |diese |die )?(?:bestellung|buchung|reservierung|anmeldung)[^.\n]{0,60}(?:ändern|stornieren)[^.\n]{0,60}`,
    String.raw`(?<!\p{L})bitte (?:darauf |hierauf )?nicht (?:darauf |hierauf |direkt )?(?:auf diese \S{1,20} )?antworten`,
    String.raw`(?<!\p{L})antworten sie (?:bitte )?nicht (?:direkt )?auf diese (?:automatische )?(?:e-?mail|nachricht|mail)(?!\p{L})`,
    String.raw`(?<!\p{L})(?:auf )?diese (?:e-?mail|nachricht|mail) (?:kann|bitte) nicht (?:be)?antwort\p{L}+(?: werden)?`,
    String.raw`(?<!\p{L})(?:wenn|falls|sollten) sie nicht der (?:richtige|vorgesehene|beabsichtigte) (?:adressat|empfänger)(?!\p{L})[^.\n]{0,120}`,
    '(?:このメール|本メール)(?:に|へ|には|への)(?:ご)?返信(?:し|いただ|でき|は)[^。\\n]{0,30}',
  ].join('|'),
  'giu',
)

/** Words by which a text takes back what it says elsewhere, also inside a value. */
const RETRACTION =
  /(?<!\p{L})(?:ignore|disregard|forget)\s{1,3}(?:my|our)\s{1,3}(?:\p{L}{1,20}\s{1,3}){0,2}(?:e-?mails?|messages?|orders?|requests?|notes?|tickets?|inquiry|enquiry)(?!\p{L})|(?<!\p{L})not cancel(?:l?ing)?(?!\p{L})[^.!?\n]{0,30}after all|(?<!\p{L})(?:doch nicht stornieren|hat sich erledigt)(?!\p{L})/iu

/** Why no value of the context counts: it takes back what it says. */
export function findRetraction(context: string): string | undefined {
  const found = RETRACTION.exec(context)?.[0]
  return found === undefined ? undefined : `the text takes something back: ${JSON.stringify(found)}`
}

/** Why the values cannot be used: the text beside them takes one back or replaces it. */
export function findCorrection(text: string): string | undefined {
  const plain = text.replace(HARMLESS, '')
  return CORRECTION.test(plain) || SECOND_THOUGHT.test(plain)
    ? `the text corrects itself: ${JSON.stringify(text.slice(0, 100))}`
    : undefined
}

/** Other words by which a text takes a value back, adds to one, or leaves one open. */
const SECOND_THOUGHT = new RegExp(
  [
    String.raw`(?<![\p{L}\p{N}])(?:(?:would|i'd|we'd|i’d|we’d) (?:\p{L}{1,10} )?prefer|after all|will do|would do|second thoughts?|by the way|would (?:even )?be (?:even )?(?:better|nicer|fine|enough)|are enough|is enough|let(?: us|['’]s) say|forget (?:it|about (?:it|this|that))|please (?:forget|hold|pause|stop|use (?:my|our|the|this))|on hold|agreed on|double the|halve the|by accident|accidentally|in error|went (?:up|down)|not (?:yet )?(?:decided|sure|final|certain)|do nothing|might (?:need|want|change)|may change|to be (?:confirmed|decided|determined)|half of|the rest|replaces?|one (?:day|week|month|hour) (?:later|earlier)|(?:ship|send|deliver) (?:it |them |this |everything )?to (?:my|our)|thousands?|millions?)(?![\p{L}\p{N}])`,
    String.raw`(?<![\p{L}\p{N}])(?:lieber|ignorieren|testbestellung|testauftrag|testanfrage|später|früher als|vereinbart|inzwischen|mittlerweile|nun doch|beträgt (?:jetzt|nun)|ist (?:jetzt|nun)|vielleicht|eventuell|evtl\.?|noch nicht|versehen|dazu (?:noch|bitte)|außerdem (?:noch|bitte)|pausieren|(?:bitte )?(?:warten|zurückhalten))(?![\p{L}\p{N}])`,
    String.raw`^(?:and|plus|also|add|und|dazu|außerdem)\s.{0,60}(?:\d|please|bitte|\b(?:an?|one|two|three|four|five|six|eine?n?|zwei|drei)\b)`,
    '(?:がいい|のほうが|の方が|に変え|にして(?:ください|ほしい)|増や|減ら|保留|忘れて|未定)',
  ].join('|'),
  'iu',
)

/** Words of sentences that change no value. */
const HARMLESS_WORDS = [
  // Thanks and wishes.
  String.raw`thank|thanks|appreciate|look(?:ing)? forward|hope (?:you|this|all)|(?:glad|happy|pleased) to (?:help|answer|assist|meet|hear|inform|announce)|pleasure|consider the environment|feel free|stay in touch|welcome|congratulations|cheers|get well|good luck|all the best|enjoy|have an? (?:good|great|nice|lovely|wonderful)|(?:nice|great|good|lovely) (?:to (?:meet|see|talk|speak|hear)|meeting|seeing|talking|speaking|chatting)|wish(?:ing)? you|talk soon|speak soon|see you|meet you|hear from you|hearing from you|in advance|danke\p{L}{0,4}|dank|freue[n]?|hoffe[n]?|herzlich\p{L}{0,2}|alles gute|viel (?:erfolg|spaß)|gute besserung|willkommen|bis bald|schöne[nrs]? (?:tag|woche\p{L}{0,4}|abend)`,
  // Where the values come from.
  String.raw`(?:have|has|had|'ve|’ve|we|i) (?:just |successfully |now )?(?:received|got|met|spoke|visited|signed up|ordered|purchased|placed|filled)|received|submitted|created|generated|booked|completed|registered|recorded|processed|shipped|dispatched|sent|assigned|exported|triggered|detected|raised|opened|reported|scheduled|reserved|charged|paid|placed|ready|on its way|came in|come[s]? from|(?:came|coming) (?:in|through|from)|arrived|(?:i am|i['’]m|we are|we['’]re) (?:writing|interested|getting in touch|reaching out|contacting|sending|submitting|applying|delighted)|we(?:['’]ll| will) (?:get back|process|review|be in touch|notify|inform|ship|dispatch|send you|keep you)|wir (?:bearbeiten|melden|prüfen|versenden|kümmern)|(?:as|like) (?:discussed|agreed|promised|announced|requested)|wie (?:besprochen|gewünscht|angekündigt|telefonisch)|here (?:is|are|comes|come|you)|hier (?:ist|sind|kommt|kommen)|this is|these are|dies ist|das ist|forward\p{L}{0,3}|weiter(?:leite\p{L}{0,2}|geleitet)|leite\p{L}{0,2}|erhalten|eingegangen|eingetroffen|bekommen|erfasst|aufgenommen|gesendet|erstellt|gebucht|bestellt|versendet|verschickt|registriert|abgeschickt|übermittelt|generiert|ausgelöst|gemeldet|aufgegeben|bezahlt`,
  // Automatic messages, and what stands below letters.
  String.raw`automat\p{L}{0,8}|confidential|vertraulich|unsubscribe|abmelden|newsletter|privacy|datenschutz|copyright|rights reserved|powered by|sent (?:from|via|by|with)|view|track|manage|dashboard|portal|app|website|filled (?:in|out)|kontaktformular|contact form|as follows|wie folgt|this (?:e-?mail|message)|diese (?:e-?mail|nachricht)|previous instructions|web ?shop|online ?shop|faq|terms|agb|team|hours|öffnungszeiten|configure|settings|preferences|export|notification|benachrichtigung|alert|summary|zahlbar|payable|prices?|preise|delivery time|lieferzeit|anliefern|klingeln|ring the (?:door)?bell`,
].join('|')

const SENTENCE_END = /(?<=[.!?])(?<!(?<!\p{L})(?:Dr|Prof|Mr|Mrs|Ms|St|No|Nr|e\.g|i\.e|z\.B)\.)\s+|(?<=[。！？])/u

/** A person who asks for something. */
const REQUEST =
  /(?<![\p{L}\p{N}])(?:please|i|we|i['’](?:d|ll|m)|we['’](?:d|ll|re)|could|can|let|need|want|only|just|bitte|ich|wir|brauchen?|möchten?|reich(?:t|en)|sind es|nur)(?![\p{L}\p{N}])|ください|お願い|ほしい|欲しい/iu
/** A number of things, an amount or a date; no phone number and no code. */
const NUMBER =
  /(?<![\p{L}\p{N}./:-])(?:\d{1,4}(?:[.,]\d{1,3})?(?:st|nd|rd|th)?(?![\p{L}\p{N}/:-]|\s?(?:\d|uhr|o['’]clock|[ap]\.?m(?!\p{L})))|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|dozen|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|dutzend)(?!\s(?:years?|jahren?))(?![\p{L}\p{N}])|\d{1,4}\s?(?:個|枚|本|台|箱|冊|点|月|日|円|名)/iu
const ADDRESS = /\S@\S/u
/** Sentences about questions, and the answer to the letter. */
const ABOUT_QUESTIONS =
  /(?<![\p{L}\p{N}])(?:questions?|help|support|contact|reply|respond|antworten|rückfragen|fragen)(?![\p{L}\p{N}])|お問い合わせ|ご連絡/iu
/** Sentences about the letter itself and its answer. */
const ABOUT_ANSWER =
  /(?<![\p{L}\p{N}])(?:below|following|attached|above-mentioned|find|get back|call|reach|write|let (?:me|us) know|confirm|within|anbei|folgende[nmrs]?|nachfolgend|unten|anhang|melden|rückmeldung|bestätigen|erreichen|innerhalb|binnen)(?![\p{L}\p{N}])|下記|以下|添付|営業日|以内/iu

/** Sentences that say where the values come from, thank, or are polite; and those of automatic messages. */
const HARMLESS_SENTENCE = new RegExp(
  [
    // "here are the details:"
    String.raw`[:：]\s*$`,
    String.raw`(?<!\p{L})(?:${HARMLESS_WORDS})(?!\p{L})`,
    // "You can see it in your dashboard." "Please quote the number of the invoice with your payment."
    String.raw`^(?:you (?:can|may|will|have|are|received|get)|you['’](?:ve|re)|sie (?:können|haben|erhalten))(?!\p{L})`,
    String.raw`^(?:please |bitte )(?:quote|state|mention|geben|nennen)(?!\p{L}).{0,60}(?:payment|transfer|correspondence|inquiries|enquiries|zahlung|überweisung)(?!\p{L})`,
    // "Please enter this order for me."
    String.raw`^(?:(?:hi|hello|hey|dear|good (?:morning|day|afternoon|evening)|hallo|moin|guten (?:tag|morgen|abend)|liebe[rs]?|sehr geehrte[rs]?)(?: \p{L}+){0,3}[,!.]?\s+)?(?:please|kindly|(?:could|can|would) you(?: please)?|(?:i|we)(?: would|['’]d)? (?:like|want|need|wish) to)\s(?:\p{L}{1,20}\s){0,2}(?:add|enter|record|register|process|book|create|open|log|file|submit|place|order|reserve|report|apply|sign up|see|find|note|take|handle|schedule|arrange|raise|set up|make|request|join|attend|send|forward|check|have a look|look at)(?!\p{L})(?:\s(?:\p{L}|[-'’.]){1,20}){0,8}[.!?]?$`,
    String.raw`^(?:(?:hi|hello|hey|dear|good (?:morning|day|afternoon|evening)|hallo|moin|guten (?:tag|morgen|abend)|liebe[rs]?|sehr geehrte[rs]?)(?: \p{L}+){0,3}[,!.]?\s+)?(?:bitte|(?:könnten|können) sie(?: bitte)?|(?:ich|wir) (?:möchten?|würden?|wollen?))(?!\p{L})(?!.*(?<!\p{L})(?:noch|zusätzlich|nur|später|früher)(?!\p{L}))(?:\s(?:\p{L}|[-'’.]){1,20}){0,8}\s(?:ein|auf)?(?:erfassen|anlegen|aufnehmen|eintragen|buchen|bestellen|reservieren|melden|anmelden|bearbeiten|prüfen|beachten|vereinbaren|aufgeben|stellen|einreichen)[.!?]?$`,
    '(?:ご確認|ご査収|ご了承|ご対応|ご覧|ご登録|よろしく|ありがとう|お世話|申し上げ|お申し込み)',
  ].join('|'),
  'iu',
)

/** What a price holds, which changes none. */
const INCLUDED =
  /(?<!\p{L})(?:includ(?:es?|ed|ing)|incl|exclud(?:es?|ed|ing)|excl|net|gross|inkl|exkl|zzgl|netto|brutto|verstehen)(?!\p{L})/iu

/** Names whose values a sentence changes: "Please double the quantity". */
const MEASURES = new Set([
  'quantity',
  'color',
  'size',
  'price',
  'price unit',
  'weight',
  'discount',
  'currency',
  'amount',
])
const MEASURES_JAPANESE = /(?:数量|個数|色|サイズ|単価|価格|金額|納期|希望日|届け先|配送先|住所)(?:は|が|を|も)/u

/**
 * Why the values cannot be used: beside them, a person asks for or says something other than what the
 * values are, or a sentence is about a quantity, a price or a color of the example. It may change a value, and it is not understood.
 */
export function findRemark(fullText: string, known: Pick<KnownNames, 'isField'>): string | undefined {
  const found = fullText
    .slice(0, REMARK_MAX_LENGTH)
    .replace(HARMLESS, '')
    .split(SENTENCE_END)
    .find((sentence) => {
      // "Please ." is left of a sentence that is harmless.
      if (ABOUT_QUESTIONS.test(sentence) || !/\p{L}[^\p{L}]+\p{L}|[^\p{ASCII}]/u.test(sentence)) return false
      if (ADDRESS.test(sentence)) return true
      if (ABOUT_ANSWER.test(sentence)) return false
      if (REQUEST.test(sentence) && NUMBER.test(sentence)) return true
      if (MEASURES_JAPANESE.test(sentence)) return true
      if (INCLUDED.test(sentence)) return false
      if (!HARMLESS_SENTENCE.test(sentence) && (isStatement(sentence) || REQUEST.test(sentence))) return true
      return sentence.split(/[^\p{L}]+/u).some((word) => {
        const words = word.length > 2 ? toWords(word.replace(/ies$/u, 'y')) : ''
        return MEASURES.has(words) && known.isField(words)
      })
    })
  return found === undefined
    ? undefined
    : `a sentence beside the values may change one: ${JSON.stringify(found.slice(0, 100))}`
}

/** Whether it says something: no greeting, title or name of a company. A title may end with an exclamation mark. */
function isStatement(sentence: string): boolean {
  const words = sentence.match(/[\p{L}\p{N}'’-]+/gu)?.length ?? 0
  return words > 8 || (words > 4 && /[.?]\s*$/u.test(sentence))
}

/**
 * Why the values cannot be used: the value of a name that the example lacks is a sentence with a number or an address, such as
 * "Comment: There will be five of us".
 */
export function findRemarkInValue(value: string): string | undefined {
  const text = value.slice(0, REMARK_MAX_LENGTH).replace(HARMLESS, '')
  const isSentence = isStatement(text) || REQUEST.test(text)
  if (
    !isSentence ||
    ABOUT_QUESTIONS.test(text) ||
    /instructions|anweisungen/iu.test(text) ||
    !(NUMBER.test(text) || ADDRESS.test(text))
  )
    return undefined
  return `a sentence beside the values may change one: ${JSON.stringify(text.slice(0, 100))}`
}

/** A longer line is a text, and no remark about the values. */
const REMARK_MAX_LENGTH = 500
