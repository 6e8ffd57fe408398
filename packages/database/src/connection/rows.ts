/** A row whose columns are named as in the contract; pg returns times as dates. */
export type RowOf<Out> = { readonly [Name in keyof Out]: Out[Name] | Date }

/** Returns a row with its times as texts. */
export function datesToIso<Out extends object>(row: RowOf<Out>): Out {
  const entries = Object.entries<unknown>(row).map(([name, value]) => [
    name,
    value instanceof Date ? value.toISOString() : value,
  ])
  return Object.fromEntries(entries) as Out
}
