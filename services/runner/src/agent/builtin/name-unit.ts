/** Takes "(EUR)", "in EUR", "(required)" and "19 %" off a name. */
export function splitUnit(name: string): { name: string; unit: string } {
  const bare = name
    .replace(/\s*[（(](?:optional|required|pflichtfeld|mandatory|必須|任意)[)）]|\s*\*$/iu, '')
    // "VAT 19 %" is the tax, and not its rate.
    .replace(/(?<=\p{L}\.?)\s*[（(]?\d{1,2}(?:[.,]\d{1,2})?\s?%[)）]?$/u, '')
  const match = /^(?<name>.{1,90}?)\s*(?:[（(](?<unit>[A-Z]{3}|\p{Sc}|%)[)）]|\sin\s(?<in>[A-Z]{3}|\p{Sc}))$/u.exec(
    bare,
  )
  return { name: match?.groups?.['name'] ?? bare, unit: match?.groups?.['unit'] ?? match?.groups?.['in'] ?? '' }
}

/** Adds the unit of a name to its value, if that is a number without one. */
export function addUnit(value: string, unit: string): string {
  return unit !== '' && /^[\d.,'’\s+-]*\d[\d.,'’\s+-]*$/u.test(value) ? `${value} ${unit}` : value
}

/** Units of measure by the ways in which names and values write them. No unit becomes another one. */
const UNITS = [
  ['kg', 'kgs', 'kilo', 'kilogram', 'kilogramm', 'キロ'],
  ['g', 'gram', 'gramm', 'gr'],
  ['lb', 'lbs', 'pound'],
  ['t', 'ton', 'tonne'],
  ['mm', 'millimeter', 'millimetre'],
  ['cm', 'centimeter', 'centimetre', 'zentimeter'],
  ['m', 'meter', 'metre'],
  ['km', 'kilometer', 'kilometre'],
  ['inch', 'inches', 'zoll'],
  ['m2', 'sqm', 'qm', 'm²'],
  ['ml', 'milliliter', 'millilitre'],
  ['l', 'liter', 'litre', 'ltr'],
  ['second', 'sec', 's', 'sekunde', 'sekunden', '秒'],
  ['minute', 'min', 'mins', 'minuten', '分'],
  ['hour', 'h', 'hr', 'hrs', 'stunde', 'stunden', 'std', '時間'],
  ['day', 'd', 'tag', 'tage', 'tagen', '日', '日間'],
  ['week', 'woche', 'wochen', '週間'],
  ['month', 'monat', 'monate', 'monaten', 'ヶ月', 'か月'],
  ['year', 'jahr', 'jahre', 'jahren', '年'],
  ['c', 'celsius', '°c', '℃'],
  ['f', 'fahrenheit', '°f'],
  ['percent', 'pct', 'prozent', '%'],
  ['kwh'],
  ['kw'],
  ['w', 'watt'],
  ['v', 'volt'],
  ['mb'],
  ['gb'],
  ['km/h', 'kmh'],
]
const UNIT_NAMES = new Map(UNITS.flatMap(([first = '', ...others]) => [first, ...others].map((name) => [name, first])))

/** The unit that a word means, as one name of it; undefined if it is none. */
export function unitOf(word: string): string | undefined {
  const name = word.toLowerCase().replace(/\.$/, '')
  return UNIT_NAMES.get(name) ?? UNIT_NAMES.get(name.replace(/s$/, ''))
}

/** Takes a number and its unit of measure apart: "3 kg". */
export function splitMeasure(text: string): { number: string; unit: string } | undefined {
  const found =
    text.length > 60 ? null : /^(?<number>.*\d)\s?(?<unit>[°℃%\p{L}][\p{L}/²2]{0,11}\.?)$/u.exec(text.trim())
  const unit = unitOf(found?.groups?.['unit'] ?? '')
  return unit === undefined ? undefined : { number: found?.groups?.['number'] ?? '', unit }
}
