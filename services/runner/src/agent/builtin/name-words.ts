import { LRUCache } from 'lru-cache'
import { COMPARED_LENGTH } from './normalize-name.ts'

/**
 * Names that mean the same (services/runner/README.md, "What the built-in agent understands"). The first of each group is
 * the one that the others become. Only names that mean the same in orders, invoices, tickets and leads alike.
 */
export const SYNONYMS: readonly (readonly string[])[] = [
  ['order', 'bestellung', 'bestell', 'auftrag', '注文', '受注'],
  ['id', 'no', 'nr', 'number', 'num', 'nummer', 'identifier', '番号'],
  ['order id', 'bestellnummer', 'best nr', 'auftragsnummer', 'order reference', 'order ref', '注文番号', '受注番号'],
  ['invoice', 'rechnung', 'rechn', '請求書'],
  ['invoice id', 'rechnungsnummer', '請求書番号', '請求番号'],
  ['customer', 'client', 'buyer', 'kunde', 'kunden', 'kundin', 'käufer', 'besteller', '顧客', 'お客様', '得意先'],
  ['customer name', 'kundenname', '顧客名', 'お客様名'],
  ['customer id', 'kundennummer', 'kd nr', '顧客番号', 'お客様番号'],
  ['vendor', 'supplier', 'lieferant', '仕入先'],
  ['name', 'full name', 'vollständiger name', '氏名', '名前', 'お名前', 'ご氏名', 'ご芳名'],
  ['first name', 'given name', 'vorname'],
  ['last name', 'family name', 'surname', 'nachname', 'familienname'],
  [
    'company',
    'firma',
    'unternehmen',
    'company name',
    'firmenname',
    '会社',
    '会社名',
    'unternehmensname',
    '貴社名',
    '御社名',
    '法人名',
  ],
  [
    'email',
    'mail',
    'email address',
    'email adresse',
    'mailadresse',
    'emailadresse',
    'work email',
    'business email',
    'contact email',
    'メール',
    'メールアドレス',
    'eメール',
    '電子メール',
  ],
  [
    'phone',
    'telephone',
    'tel',
    'telefon',
    'phone number',
    'telephone number',
    'telefonnummer',
    'phone no',
    'telephone no',
    'tel no',
    'telefonnr',
    '電話',
    '電話番号',
    'rufnummer',
    'contact phone',
    'お電話番号',
  ],
  ['mobile', 'mobile phone', 'mobile number', 'handy', 'handynummer', 'mobil', 'mobilnummer', 'cell phone', '携帯電話'],
  ['address', 'adresse', 'anschrift', '住所'],
  ['street', 'straße', 'strasse', 'street address', 'straße und hausnummer', 'straße hausnummer', 'straße nr'],
  ['city', 'town', 'stadt', 'ort', '市区町村'],
  ['zip', 'zip code', 'postal code', 'postcode', 'plz', 'postleitzahl', '郵便番号'],
  ['country', 'land', '国', '国名'],
  ['shipping address', 'ship to', 'delivery address', 'lieferadresse', 'deliver to', '配送先', 'お届け先', '届け先'],
  ['billing address', 'bill to', 'rechnungsadresse', 'rechnungsanschrift'],
  ['quantity', 'qty', 'menge', 'anzahl', 'stückzahl', '数量', '個数', '注文数', '注文数量'],
  [
    'unit price',
    'einzelpreis',
    'stückpreis',
    'price each',
    'price per unit',
    '単価',
    'preis pro stück',
    'preis je stück',
    'price per item',
  ],
  ['price', 'preis', '価格'],
  [
    'product',
    'item',
    'article',
    'artikel',
    'produkt',
    'product name',
    'artikelname',
    '商品',
    '商品名',
    '品名',
    'artikelbezeichnung',
    '製品',
    '製品名',
    '品目',
  ],
  [
    'sku',
    'article number',
    'artikelnummer',
    'art nr',
    'item number',
    'item no',
    'product code',
    'product number',
    'part number',
    '品番',
    '商品コード',
    'artikel nr',
    'article no',
    'part no',
    '商品番号',
    '型番',
  ],
  ['line', 'line item', 'order line', 'order item', 'position', 'positionen', '明細'],
  [
    'total',
    'grand total',
    'total amount',
    'sum total',
    'gesamt',
    'gesamtbetrag',
    'gesamtsumme',
    'summe',
    '合計',
    '合計金額',
    'total price',
    'total sum',
    'gesamtpreis',
    'endbetrag',
    'endsumme',
    '総額',
  ],
  ['amount', 'betrag', '金額'],
  ['net amount', 'net', 'net total', 'subtotal', 'netto', 'nettobetrag', 'zwischensumme', '小計'],
  ['gross amount', 'gross', 'brutto', 'bruttobetrag'],
  ['tax', 'vat', 'sales tax', 'mwst', 'mehrwertsteuer', 'ust', 'umsatzsteuer', '消費税'],
  ['tax rate', 'vat rate', 'steuersatz', 'mwst satz', 'mehrwertsteuersatz', '税率'],
  ['discount', 'rabatt', 'nachlass', '割引'],
  ['currency', 'währung', '通貨'],
  ['date', 'datum', '日付'],
  [
    'due date',
    'payment due',
    'due',
    'fällig',
    'fällig am',
    'fälligkeit',
    'fälligkeitsdatum',
    'zahlbar bis',
    '支払期限',
    '支払期日',
    'payable by',
    'fällig bis',
    'お支払期限',
    'お支払い期限',
    '支払い期限',
  ],
  [
    'delivery date',
    'lieferdatum',
    'liefertermin',
    'wunschliefertermin',
    '納期',
    '納品日',
    'お届け日',
    '配達日',
    '納入日',
  ],
  ['order date', 'bestelldatum', 'auftragsdatum', '注文日', '受注日'],
  ['invoice date', 'rechnungsdatum', '請求日'],
  ['delivery', 'lieferung', 'liefer'],
  ['paid', 'bezahlt', '支払済', '支払済み'],
  ['subject', 'betreff', '件名'],
  ['title', 'titel', 'タイトル'],
  ['description', 'beschreibung', '説明'],
  ['message', 'nachricht', 'mitteilung', 'メッセージ', 'お問い合わせ内容'],
  [
    'note',
    'notes',
    'notiz',
    'bemerkung',
    'anmerkung',
    'comment',
    'remark',
    'kommentar',
    'hinweis',
    '備考',
    'コメント',
    'メモ',
    'bemerkungen',
    'anmerkungen',
    'notizen',
    'kommentare',
    'additional note',
    'additional comment',
    '特記事項',
  ],
  ['priority', 'prio', 'priorität', '優先度', '重要度', '優先順位'],
  ['status', 'state of order', 'ステータス', '状態'],
  ['category', 'kategorie', 'カテゴリ', 'カテゴリー'],
  ['website', 'web site', 'homepage', 'webseite', 'ウェブサイト'],
  ['contact', 'contact person', 'ansprechpartner', 'kontakt', '担当者'],
  ['reference', 'ref', 'referenz'],
  ['organization', 'organisation', '組織'],
  [
    'payment method',
    'payment type',
    'zahlungsart',
    'zahlungsmethode',
    'zahlungsweise',
    'bezahlart',
    '支払方法',
    '支払い方法',
    'お支払い方法',
  ],
  ['shipping method', 'delivery method', 'shipping type', 'versandart', 'versandmethode', 'lieferart', '配送方法'],
  ['weight', 'gewicht', '重量'],
  ['color', 'colour', 'farbe', '色', 'カラー'],
  ['size', 'größe', 'サイズ'],
  ['department', 'abteilung', '部署'],
  ['job title', 'jobtitel', 'position title', '役職'],
  ['salutation', 'anrede', '敬称'],
  ['check in', 'arrival', 'anreise', 'arrival date', 'check in date', 'チェックイン', '到着日'],
  ['check out', 'departure', 'abreise', 'departure date', 'check out date', 'チェックアウト', '出発日'],
  ['participant', 'attendee', 'teilnehmer', 'teilnehmerzahl', '参加者', '参加人数'],
  ['guest', 'gäste', 'gast', 'anzahl gäste', '宿泊人数'],
  ['time', 'uhrzeit', '時間', '時刻'],
  ['language', 'sprache', '言語'],
  ['tracking id', 'tracking code', 'sendungsnummer', '追跡番号', 'お問い合わせ番号'],
  ['carrier', 'spediteur', 'paketdienst', '運送会社', '配送業者'],
  ['tax id', 'ust id', 'ust id nr', 'ust idnr', 'umsatzsteuer id'],
  ['birth date', 'date of birth', 'birthday', 'geburtsdatum', 'geburtstag', '生年月日'],
  ['start date', 'startdatum', '開始日'],
  ['end date', 'enddatum', '終了日'],
  ['booking', 'reservation', 'buchung', 'reservierung', '予約'],
  ['contract', 'vertrag', '契約'],
  ['project', 'projekt', 'プロジェクト'],
  ['quote', 'quotation', 'angebot', '見積', '見積書'],
  ['room', 'zimmer', 'raum', '部屋'],
  ['reason', 'grund', '理由'],
  ['gender', 'geschlecht', '性別'],
  ['shipping cost', 'shipping fee', 'versandkosten', '送料'],
  ['state', 'bundesland', 'province', '都道府県'],
]

/** Words that carry no meaning in a name. */
const FILLERS = new Set([
  'the',
  'of',
  'a',
  'an',
  'your',
  'our',
  'is',
  'my',
  'der',
  'die',
  'das',
  'des',
  'ihr',
  'ihre',
  'unser',
])

/** Field names are often written so: `prioritaet` is what "Priorität" shows. */
const WITHOUT_UMLAUTS: Readonly<Record<string, string>> = { ä: 'ae', ö: 'oe', ü: 'ue', ß: 'ss' }

/** Ends of German compounds, which are words of their own elsewhere. */
const COMPOUND_ENDS = ['nummer', 'nr', 'datum', 'name', 'betrag', 'adresse', 'preis', 'satz']

const PHRASE_MAX_WORDS = 3

const PHRASES = new Map(
  SYNONYMS.flatMap(([first = '', ...others]) => {
    const meaning = split(first)
    return [first, ...others].map((name) => [split(name).join(' '), meaning] as const)
  }),
)

/** Contexts repeat their names from run to run. */
const cachedWords = new LRUCache<string, string>({ max: 5_000 })

/**
 * The words of a name after the table of synonyms, in alphabetical order: "Order no.", "Bestellnummer" and `orderId` give
 * "id order". Only the first 200 characters count.
 */
export function toWords(name: string): string {
  const part = name.slice(0, COMPARED_LENGTH)
  const known = cachedWords.get(part)
  if (known !== undefined) return known
  // A part of a text keeps the whole text in memory.
  const copy = Buffer.from(part).toString()
  const words = listWords(copy).join(' ')
  cachedWords.set(copy, words)
  return words
}

function listWords(name: string): readonly string[] {
  let words = split(name)
  // "Number of guests" is what `guests` shows.
  if (words.length > 2 && /^(?:number|no|anzahl)$/.test(words[0] ?? '') && words[1] === 'of') words = words.slice(2)
  const meanings: string[] = []
  for (let index = 0; index < words.length;) {
    let length = Math.min(PHRASE_MAX_WORDS, words.length - index)
    let meaning: readonly string[] | undefined
    for (; length > 0 && !meaning; length -= 1) meaning = PHRASES.get(words.slice(index, index + length).join(' '))
    meanings.push(...(meaning ?? splitCompound(words[index] ?? '')))
    index += meaning ? length + 1 : 1
  }
  const kept = meanings.filter((word) => !FILLERS.has(word))
  return [...new Set(kept.length > 0 ? kept : meanings)].toSorted()
}

function splitCompound(word: string): readonly string[] {
  const end = COMPOUND_ENDS.find((each) => word.length > each.length + 2 && word.endsWith(each))
  if (end === undefined) return [word]
  const stem = word.slice(0, -end.length)
  const known = [stem, stem.replace(/s$/, ''), stem.replace(/n$/, ''), stem.replace(/en$/, '')].find((each) =>
    PHRASES.has(each),
  )
  return [...(known === undefined ? [stem] : (PHRASES.get(known) ?? [])), ...(PHRASES.get(end) ?? [end])]
}

/** The words of a name in lower case, without umlauts and in the singular. */
function split(name: string): string[] {
  const words = name
    .normalize('NFKC')
    .replace(/mwst/giu, 'mwst ')
    .replace(/(?<=[\p{Ll}\p{N}])(?=\p{Lu})/gu, ' ')
    .toLowerCase()
    .replace(/[äöüß]/gu, (letter) => WITHOUT_UMLAUTS[letter] ?? letter)
    .replace(/(?<![\p{L}\p{N}])e[-\s]?mail/gu, 'email')
    .replaceAll('#', ' id ')
    .split(/[^\p{L}\p{M}\p{N}]+/u)
  return words.filter((word) => word !== '').map((word) => word.replace(/(?<=^[a-z]{3,})(?<![suiS])s$/u, ''))
}
