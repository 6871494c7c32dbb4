import { type HtmlPart, html } from '../../../alert/text/html.ts'
import type { DeadReason, RetryReason } from '../../../sinks/outcome.ts'
import type { WithheldCause } from '../../views/delivery-view.ts'
import { foreign } from '../foreign.ts'

/** Why a sink did not take an alert, and why an alert was held back, in Persian. */
export const persianReasons: Readonly<Record<RetryReason | DeadReason | 'stalled' | 'unknown', string>> = {
  rate_limited: 'گیرنده خواست آهسته‌تر فرستاده شود',
  server_error: 'خطای سرور گیرنده',
  timeout: 'پاسخ به‌موقع نرسید',
  dns: 'نشانی گیرنده پیدا نشد',
  connect: 'اتصال برقرار نشد',
  tls: 'اتصال امن برقرار نشد',
  connection_lost: 'اتصال قطع شد',
  bad_answer: 'پاسخ گیرنده نامفهوم است',
  redirect: 'گیرنده به نشانی دیگری فرستاد',
  blocked_address: 'این نشانی مجاز نیست',
  credentials: 'گیرنده مشخصات ورود را نپذیرفت',
  aborted: 'ارسال نیمه‌کاره ماند',
  gone: 'گیرنده دیگر وجود ندارد',
  rejected: 'گیرنده نپذیرفت',
  unrenderable: 'متن پیام ساخته نشد',
  expired: 'مهلت ارسال گذشت',
  attempts_exhausted: 'همهٔ تلاش‌ها ناموفق بود',
  stalled: 'ارسال چند بار نیمه‌کاره ماند',
  unknown: 'دلیل دانسته نیست',
}

/** Without a verb, since the mute, silence or throttle may be over or not. */
export function persianHeld(
  { reason, route, until, silence, comment }: WithheldCause,
  when: (iso: string) => HtmlPart,
): HtmlPart {
  const end = until === null ? null : html`، پایان آن ${when(until)}`
  const way = html`مسیر ${foreign(route ?? '')}`
  switch (reason) {
    case 'unrouted':
      return 'هیچ مسیری مقصدی برای آن نداشت'
    case 'muted':
      return html`زمان بی‌صدای ${way}${end}`
    case 'silenced':
      return html`بی‌صدایی ${foreign(silence ?? '')} در ${way}${end ?? '، که زودتر پایان یافت'}${comment === null ? null : html` «${foreign(comment)}»`}`
    case 'throttled':
      return html`محدودیت ارسال ${way}${end}`
    default:
      return reason satisfies never
  }
}
