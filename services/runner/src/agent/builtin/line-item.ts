import { parseNumber } from './convert-number.ts'
import type { ExampleObject } from './example-level.ts'
import { type ContextObject, NumberText } from './context-value.ts'

const COUNT = String.raw`\d{1,6}`
/** "2 x chairs", "2 Stück Stuhl", "chairs x 2". Units of measure are not among the words: 2 kg are no two things. */
const PATTERNS = [
  new RegExp(String.raw`^(?<count>${COUNT})\s?(?:[x×*]|mal|pcs?\.?|pieces?(?: of)?|stück|stk\.?)\s+(?<name>.+)$`, 'iu'),
  new RegExp(String.raw`^(?<name>.+?)\s+[x×*]\s?(?<count>${COUNT})$`, 'iu'),
  new RegExp(String.raw`^(?<name>.+?)\s*[(（]?\s*[x×]?(?<count>${COUNT})\s?(?:個|枚|本|台|箱|冊|点)[)）]?$`, 'iu'),
]
/** A price or a code in the name belongs to a field of its own, and which is not clear. */
const UNCLEAR =
  /\p{Sc}|@|[:：=]|[([（]|\d[.,]\d{2}(?!\d)|(?:^|[\s-])\d+(?:[.,]\d+)?\s?(?:eur|usd|gbp|chf|円|euro?s?)(?!\p{L})/iu

/**
 * Reads an item of a list in words, such as "2 x chairs", for items with a name and a quantity. Undefined for any other
 * text, and for items of other fields.
 */
export function readLineItem(text: string, { fields }: ExampleObject): ContextObject | undefined {
  const quantity = fields.filter(({ lastWords, schema }) => lastWords === 'quantity' && schema['type'] === 'number')
  const names = fields.filter(
    ({ lastWords, schema }) => /^(?:name|product|title|description)$/.test(lastWords) && schema['type'] === 'string',
  )
  const [number] = quantity
  const [name] = names
  if (!number || !name || quantity.length > 1 || names.length > 1 || text.length > 200) return undefined
  for (const pattern of PATTERNS) {
    const found = pattern.exec(text.trim())?.groups
    const count = parseNumber(found?.['count'] ?? '')
    if (!found || 'error' in count || !/\p{L}/u.test(found['name'] ?? '') || UNCLEAR.test(found['name'] ?? '')) continue
    return { [name.name]: (found['name'] ?? '').trim(), [number.name]: new NumberText(String(count.value)) }
  }
  return undefined
}
