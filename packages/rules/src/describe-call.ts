import type { CelType } from '@bufbuild/cel'

/** Describes a call whose arguments fit none of the functions of that name. */
export function describeMismatch(name: string, types: readonly CelType[]): string {
  const names = types.map(({ name: type }) => type.replace('google.protobuf.', '').toLowerCase())
  const operator = OPERATOR.exec(name)?.groups?.['symbol'] ?? (name === '@in' ? 'in' : undefined)
  const hint =
    operator !== undefined && names.includes('double') && names.includes('int')
      ? '; write the whole number with a point, such as 100.0'
      : ''
  return `${operator ?? `${name}(…)`} cannot be used with ${names.join(' and ') || 'nothing'}${hint}`
}

const OPERATOR = /^_?(?<symbol>[^\w@]+)_?$/
