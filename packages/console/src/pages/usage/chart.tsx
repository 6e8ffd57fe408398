import type { Result } from './results.ts'

interface ChartProps {
  /** Names what is counted: `Starts`. */
  label: string
  series: readonly Result[]
  /** From left to right; the values are in the order of the series. */
  bars: readonly { label: string; values: readonly number[] }[]
}

/** Stacked bars with a legend. The table below it has the same numbers for screen readers. */
export function Chart({ label, series, bars }: ChartProps) {
  const sums = bars.map(({ values }) => values.reduce((sum, value) => sum + value, 0))
  const highest = Math.max(...sums)
  const totals = series.map((_, index) => bars.reduce((sum, { values }) => sum + (values[index] ?? 0), 0))
  const legend = series.map((each, index) => `${(totals[index] ?? 0).toLocaleString('en')} ${each.label}`)
  return (
    <figure className="chart">
      <figcaption className="row">
        {series.map(({ tone, label: name }, index) => (
          <span key={name} className={`badge ${totals[index] ? tone : 'quiet'}`}>
            {legend[index]}
          </span>
        ))}
        <span className="muted at-end">Highest: {highest.toLocaleString('en')}</span>
      </figcaption>
      <svg
        role="img"
        aria-label={`${label}: ${legend.join(', ')}`}
        viewBox={`0 0 ${bars.length} 100`}
        preserveAspectRatio="none"
      >
        {bars.map(({ label: at, values }, index) => {
          let y = 100
          return (
            <g key={at}>
              <title>{`${at}: ${values.map((value, each) => `${value.toLocaleString('en')} ${series[each]?.label}`).join(', ')}`}</title>
              <rect className="space" x={index} y={0} width={1} height={100} />
              {values.map((value, each) => {
                const height = (100 * value) / (highest || 1)
                y -= height
                return (
                  <rect
                    key={series[each]?.label}
                    className={series[each]?.tone}
                    x={index + 0.1}
                    y={y}
                    width={0.8}
                    height={height}
                  />
                )
              })}
            </g>
          )
        })}
      </svg>
      <p className="muted" aria-hidden="true">
        <span>{bars[0]?.label}</span>
        <span>{bars.at(-1)?.label}</span>
      </p>
    </figure>
  )
}
