/** Takes "(EUR)", "in EUR" and "(required)" off a name. */
export function splitUnit(name: string): { name: string; unit: string } {
  const bare = name.replace(/\s*[（(](?:optional|required|pflichtfeld|mandatory|必須|任意)[)）]|\s*\*$/iu, '')
  const match = /^(?<name>.{1,90}?)\s*(?:[（(](?<unit>[A-Z]{3}|\p{Sc}|%)[)）]|\sin\s(?<in>[A-Z]{3}|\p{Sc}))$/u.exec(
    bare,
  )
  return { name: match?.groups?.['name'] ?? bare, unit: match?.groups?.['unit'] ?? match?.groups?.['in'] ?? '' }
}

/** Adds the unit of a name to its value, if that is a number without one. */
export function addUnit(value: string, unit: string): string {
  return unit !== '' && /^[\d.,'’\s+-]*\d[\d.,'’\s+-]*$/u.test(value) ? `${value} ${unit}` : value
}
