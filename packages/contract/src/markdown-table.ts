/** Returns a table in Markdown, the first row being its head, with the columns padded as oxfmt does. */
export function toTable(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map((cell) => cell.replaceAll('|', '\\|')))
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => (row[column] ?? '').length), 3))
  const [head = '', ...body] = cells.map(
    (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |\n`,
  )
  return `${head}| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |\n${body.join('')}`
}
