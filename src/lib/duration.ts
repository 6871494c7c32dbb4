const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
type Unit = keyof typeof unitMs

/** `500ms 10s 15m 6h 3d` to milliseconds; undefined when the text is no duration. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim())
  if (!match) return undefined
  return Math.round(Number(match[1]) * unitMs[match[2] as Unit])
}

/** Milliseconds as people read them: `850ms`, `12.5s`, `3m`, `1h 20m`, `2d 4h`. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return 'never'
  if (ms < 0) return `-${formatDuration(-ms)}`
  if (ms < 1_000) return `${Math.round(ms)}ms`
  if (ms < 60_000) return `${Number((ms / 1_000).toFixed(1))}s`
  const seconds = Math.round(ms / 1_000)
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor((seconds % 86_400) / 3_600), 'h'],
    [Math.floor((seconds % 3_600) / 60), 'm'],
    [seconds % 60, 's'],
  ]
  const first = parts.findIndex(([count]) => count > 0)
  const shown = parts.slice(first, first + 2).filter(([count]) => count > 0)
  return shown.map(([count, unit]) => `${count}${unit}`).join(' ')
}

/** Milliseconds as a duration that the config takes: one number, one unit. */
export function durationText(ms: number): string {
  const unit = (['d', 'h', 'm', 's'] as const).find((name) => ms >= unitMs[name] && ms % unitMs[name] === 0)
  return unit ? `${ms / unitMs[unit]}${unit}` : `${ms}ms`
}
