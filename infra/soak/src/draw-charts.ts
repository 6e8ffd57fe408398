/** One chart: lines over time. */
export interface Chart {
  readonly title: string
  readonly lines: readonly {
    readonly name: string
    readonly points: readonly (readonly [at: number, value: number])[]
  }[]
  /** For values that differ by factors of ten. Default: linear, from 0. */
  readonly isLogarithmic?: boolean
}

const WIDTH = 620
const HEIGHT = 250
const MARGIN = { left: 52, right: 12, top: 30, bottom: 46 }
/** Distinguishable with every common colour blindness (Okabe and Ito). */
const COLORS = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9']

/**
 * Draws the charts in two columns, as SVG.
 *
 * @param options.hours The end of the time axis; points are in ms from its beginning.
 * @param options.marks Times of incidents, in ms: thin vertical lines.
 */
export function drawCharts(charts: readonly Chart[], options: { hours: number; marks: readonly number[] }): string {
  const rows = Math.ceil(charts.length / 2)
  const drawn = charts.map((chart, index) => {
    const [x, y] = [(index % 2) * WIDTH, Math.floor(index / 2) * HEIGHT]
    return `<g transform="translate(${x} ${y})">${drawChart(chart, options)}</g>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${2 * WIDTH} ${rows * HEIGHT}" font-family="sans-serif" font-size="11">
<rect width="100%" height="100%" fill="white"/>
${drawn.join('\n')}
</svg>
`
}

function drawChart(
  { title, lines, isLogarithmic = false }: Chart,
  { hours, marks }: { hours: number; marks: readonly number[] },
): string {
  const [plotWidth, plotHeight] = [WIDTH - MARGIN.left - MARGIN.right, HEIGHT - MARGIN.top - MARGIN.bottom]
  const values = lines.flatMap(({ points }) => points.map(([, value]) => value)).filter((value) => value > 0)
  const { low, high, ticks } = scaleOf(values, isLogarithmic)
  const x = (at: number): number => MARGIN.left + (at / (hours * 3_600_000)) * plotWidth
  const y = (value: number): number => {
    const share = isLogarithmic
      ? Math.log(Math.max(value, low) / low) / Math.log(high / low)
      : (value - low) / (high - low)
    return MARGIN.top + (1 - share) * plotHeight
  }
  const bottom = MARGIN.top + plotHeight
  const parts = [`<text x="${MARGIN.left}" y="18" font-size="13" font-weight="bold">${escape(title)}</text>`]
  for (const at of marks) {
    parts.push(`<line x1="${fix(x(at))}" x2="${fix(x(at))}" y1="${MARGIN.top}" y2="${bottom}" stroke="#eee"/>`)
  }
  for (const tick of ticks) {
    parts.push(
      `<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${fix(y(tick))}" y2="${fix(y(tick))}" stroke="#ddd"/>`,
      `<text x="${MARGIN.left - 6}" y="${fix(y(tick) + 4)}" text-anchor="end" fill="#555">${tick.toLocaleString('en')}</text>`,
    )
  }
  for (let part = 0; part <= 4; part += 1) {
    const hour = (hours * part) / 4
    const label = hours >= 1 ? `${Number(hour.toPrecision(2))} h` : `${Number((hour * 60).toPrecision(3))} min`
    const at = fix(x(hour * 3_600_000))
    parts.push(`<text x="${at}" y="${bottom + 15}" text-anchor="middle" fill="#555">${label}</text>`)
  }
  for (const [index, { name, points }] of lines.entries()) {
    const color = COLORS[index % COLORS.length]
    const path = points.map(([at, value]) => `${fix(x(at))},${fix(y(value))}`).join(' ')
    parts.push(
      `<polyline points="${path}" fill="none" stroke="${color}" stroke-width="1.4"/>`,
      `<rect x="${MARGIN.left + index * 135}" y="${bottom + 26}" width="10" height="10" fill="${color}"/>`,
      `<text x="${MARGIN.left + 14 + index * 135}" y="${bottom + 35}">${escape(name)}</text>`,
    )
  }
  return parts.join('\n')
}

/** The range of the values and at most six round numbers in it. */
function scaleOf(values: readonly number[], isLogarithmic: boolean): { low: number; high: number; ticks: number[] } {
  const largest = values.reduce((most, value) => Math.max(most, value), Number.MIN_VALUE)
  if (isLogarithmic) {
    const smallest = values.reduce((least, value) => Math.min(least, value), Infinity)
    const [from, to] = [Math.floor(Math.log10(smallest)), Math.ceil(Math.log10(largest))]
    const ticks = Array.from({ length: Math.max(to - from, 1) + 1 }, (_, index) => 10 ** (from + index))
    return { low: ticks[0]!, high: ticks.at(-1)!, ticks: ticks.map((tick) => Number(tick.toPrecision(3))) }
  }
  const rough = largest / 4
  const magnitude = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * magnitude).find((candidate) => candidate >= rough)!
  const ticks = Array.from({ length: Math.ceil(largest / step) + 1 }, (_, index) =>
    Number((index * step).toPrecision(6)),
  )
  return { low: 0, high: ticks.at(-1)!, ticks }
}

function fix(value: number): string {
  return String(Number(value.toFixed(1)))
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
