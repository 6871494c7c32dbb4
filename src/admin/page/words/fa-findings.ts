import { type HtmlPart, html } from '../../../alert/text/html.ts'
import type { FindingWords, Saying } from '../../finding.ts'
import { englishText, failure, foreign } from '../foreign.ts'
import { persianReasons } from './fa-reasons.ts'

/** How numbers, spans of time (milliseconds), instants (ISO 8601) and sentences of the bridge are written. */
interface Forms {
  readonly count: (number: number) => string
  readonly duration: (ms: number) => string
  readonly distance: (iso: string) => HtmlPart
  readonly sentence: (text: string) => HtmlPart
}

/** What the verdict found, in Persian. What others wrote stays as it came. */
export function persianFinding({ code, data }: Saying, forms: Forms): HtmlPart {
  return (texts[code] as (data: Saying['data'], forms: Forms) => HtmlPart)(data, forms)
}

const texts: FindingWords<HtmlPart, [Forms]> = {
  draining: () => 'پل در حال خاموش شدن است',
  redis_away: ({ reason }) => html`ردیس پاسخ نمی‌دهد${inBrackets(reason)}؛ پرس‌وجو و ارسال در انتظار آن است`,
  redis_unsafe: ({ reason }) => html`ردیس درست تنظیم نشده است${behind(reason)}`,
  redis_uncounted: () => 'ردیس کند است یا پاسخ نمی‌دهد: بخشی از آنچه در انتظار است یا تحویل نشده شمرده نشد',
  rows_quarantined: ({ count: rows }, { count }) =>
    html`${count(rows)} ردیف خوانده نشد و کنار گذاشته شد (${englishText('alert-bridge quarantine')})`,
  reload_refused: ({ reason, more }, { count }) =>
    html`پیکربندی تازه پذیرفته نشد و پیکربندی پیشین همچنان برقرار است${behind(reason)}${more > 0 && ` و ${count(more)} اشکال دیگر`}`,
  configs_differ: ({ processes }, { sentence }) =>
    html`جز پیکربندی این پردازه، پیکربندی دیگری هم در کار است: ${processes.map(({ name, role }, at) => [at > 0 && '؛ ', englishText(sentence(`${name} (${role})`))])}`,
  orphaned: (orphan, { count }) => {
    const how = html` (${englishText('alert-bridge orphans')})`
    if (orphan.kind === 'sink')
      return html`مقصد ${foreign(orphan.name)} در پیکربندی نیست، ولی ${count(orphan.waiting + orphan.sending + orphan.delayed)} هشدار در صف و ${count(orphan.dead)} هشدار تحویل‌نشدهٔ آن مانده است${how}`
    const { rows, held, quarantined } = orphan
    const more = [
      ...(held > 0 ? [`، ${count(held)} هشدار نگه‌داشته`] : []),
      ...(quarantined > 0 ? [`، ${count(quarantined)} ردیف ناخوانا`] : []),
    ]
    return html`منبع ${foreign(orphan.name)} در پیکربندی نیست، ولی داده‌های آن مانده است: ${count(rows)} ردیف${more}${how}`
  },
  source_starting: ({ source }) => html`هنوز از منبع ${foreign(source)} پرس‌وجو نشده است`,
  source_crashed: ({ source, reason }) =>
    html`پرس‌وجو از منبع ${foreign(source)} با خطا قطع شد و از سر گرفته شد${behind(reason)}`,
  source_stuck: ({ source, reason }) => html`پرس‌وجو از منبع ${foreign(source)} گیر کرده است${behind(reason)}`,
  source_redis_away: ({ source, reason }) =>
    html`پرس‌وجو از منبع ${foreign(source)} در انتظار ردیس است${behind(reason)}`,
  source_failing: ({ source, reason }) =>
    html`هیچ پرس‌وجویی از منبع ${foreign(source)} موفق نیست${behind(reason)}`,
  source_overdue: ({ source, seconds }, { duration }) =>
    html`از منبع ${foreign(source)} باید ${duration(seconds * 1_000)} پیش پرس‌وجو می‌شد`,
  source_stopped: ({ source, reason }) =>
    html`پرس‌وجو از منبع ${foreign(source)} متوقف شده است${behind(reason)}`,
  source_budget_spent: ({ source }) =>
    html`بودجهٔ امروز منبع ${foreign(source)} تمام شده است؛ پرس‌وجو در انتظار شروع دوبارهٔ بودجه است`,
  source_retrying: ({ source, reason }) =>
    html`اکنون نمی‌توان از منبع ${foreign(source)} پرس‌وجو کرد؛ دوباره تلاش می‌شود${behind(reason)}`,
  source_catching_up: ({ source, reason }) =>
    reason
      ? html`منبع ${foreign(source)} عقب مانده است و یکی از صفحه‌های بعدی خوانده نمی‌شود${behind(reason)}`
      : html`منبع ${foreign(source)} عقب مانده و در حال جبران است`,
  source_queues_full: ({ source, reason }) =>
    html`صف‌ها پر است و پرس‌وجو از منبع ${foreign(source)} صبر می‌کند${behind(reason)}`,
  source_unpolled: ({ source }) =>
    html`تا جایی که ردیس نشان می‌دهد، هنوز هیچ پردازه‌ای از منبع ${foreign(source)} پرس‌وجو نکرده است`,
  source_rules_silent: ({ source, count: rules }, { count }) =>
    html`شاید ${count(rules)} قاعدهٔ منبع ${foreign(source)} هشدار ندهد`,
  source_budget_thin: ({ source, reason }) =>
    html`واحدهای منبع ${foreign(source)} کافی نیست${behind(reason)}`,
  sink_refuses: ({ sink, count: refused, reason }, { count }) =>
    html`مقصد ${foreign(sink)} هیچ هشداری را نمی‌پذیرد: ${count(refused)} هشدار آخر رها شد${failed(reason) ?? ' (دلیل دانسته نیست)'}`,
  sink_slow: ({ sink, waiting, oldestSeconds, drainSeconds, heldUntil }, { count, duration, distance }) => {
    const pace =
      drainSeconds === null
        ? 'در این مدت چیزی فرستاده نشده است'
        : `با این سرعت ${duration(drainSeconds * 1_000)} دیگر طول می‌کشد`
    const why = heldUntil === null ? pace : html`این مقصد درنگ خواسته است؛ پایان: ${distance(heldUntil)}`
    return html`مقصد ${foreign(sink)} کند است: ${count(waiting)} هشدار در انتظار است، قدیمی‌ترینِ آن‌ها از ${duration(oldestSeconds * 1_000)} پیش؛ ${why}`
  },
  sink_puts_off: ({ sink, delayed, seconds }, { count, duration }) =>
    html`مقصد ${foreign(sink)} همه چیز را به بعد می‌اندازد: ${count(delayed)} هشدار در انتظار تلاش بعدی است، یکی از آن‌ها از ${duration(seconds * 1_000)} پیش؛ در این مدت چیزی تأیید نشده است`,
  sink_failing: ({ sink, reason, queued }, forms) =>
    html`ارسال به مقصد ${foreign(sink)} ناموفق است و فعلاً انجام نمی‌شود${failed(reason)}${waiting(queued, forms)}`,
  sink_stuck: ({ sink, reason }) => html`مقصد ${foreign(sink)} گیر کرده است${behind(reason)}`,
  sink_paused: ({ sink, until, reason, queued }, forms) =>
    html`مقصد ${foreign(sink)} متوقف است${until !== null && html`، پایان آن ${forms.distance(until)}`}${inBrackets(reason)}${waiting(queued, forms)}`,
  sink_dead_letters: ({ sink, count: letters }, { count }) =>
    html`مقصد ${foreign(sink)} ${count(letters)} هشدار تحویل‌نشده دارد`,
}

function inBrackets(reason: string | null): HtmlPart {
  return reason ? html` (${foreign(reason)})` : null
}

/** Why a sink fails: the bridge's reason in Persian, then what the receiver said, as it came. */
function failed(reason: string | null): HtmlPart {
  return reason ? html` (${failure(reason, persianReasons)})` : null
}

function behind(reason: string | null): HtmlPart {
  return reason ? html`: ${foreign(reason)}` : null
}

function waiting(queued: number, { count }: Forms): HtmlPart {
  return queued > 0 ? `؛ ${count(queued)} هشدار در انتظار است` : null
}
