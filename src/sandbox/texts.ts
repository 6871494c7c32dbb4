import type { Listing, Screen } from './market.ts'
import type { Random } from './random.ts'

/** The texts of the alerts of each kind: mostly in Persian, sometimes in English. */
export type AlertKind = 'price' | 'volume' | 'indicator' | 'filing' | 'screen'

interface AlertText {
  readonly headline: string
  /** null where the API gives no reason, as it sometimes does. */
  readonly why: string | null
  readonly payload: readonly string[]
}

/** What an alert is about: an instrument, or what happened in a screen. */
export type Subject =
  | { readonly kind: Exclude<AlertKind, 'screen'>; readonly instrument: Listing }
  | { readonly kind: 'screen'; readonly screen: Screen; readonly instrument: Listing | null }

/** What the market shows of an instrument when the alert fires; each is computed when a text needs it. */
export interface Shown {
  last(): number
  rsi(): number
  /** The volume, in averages of 20 sessions. */
  volumeRatio(): number
  /** Of the latest letter. */
  periodMonths(): number
}

export function alertText(
  subject: Subject,
  shownOf: (instrument: Listing) => Shown,
  random: Random,
): AlertText {
  const text =
    subject.kind === 'screen'
      ? screenText(subject.screen, subject.instrument, random)
      : textMakers[subject.kind](subject.instrument, shownOf(subject.instrument))
  const [headline, why] = random.next() < 0.7 ? text.persian : text.english
  return { headline, why: random.next() < 0.9 ? why : null, payload: text.payload }
}

interface BilingualText {
  /** Headline and reason. */
  readonly persian: readonly [string, string]
  readonly english: readonly [string, string]
  readonly payload: readonly string[]
}

const units = { rial: 'ریال', toman: 'تومان', usd: 'دلار' } as const
// Number.toLocaleString makes a format anew each time, which takes longer than the rest of an alert.
const { format: fa } = new Intl.NumberFormat('fa-IR')
const { format: en } = new Intl.NumberFormat('en-US')

const textMakers: Readonly<
  Record<Exclude<AlertKind, 'screen'>, (of: Listing, shown: Shown) => BilingualText>
> = {
  price(of, shown) {
    const last = shown.last()
    const up = last >= of.price
    const percent = Math.round(Math.abs(last / of.price - 1) * 1_000) / 10
    const unit = units[of.unit]
    return {
      persian: [
        `${of.symbol} ${up ? 'از' : 'به زیر'} ${fa(of.price)} ${unit} ${up ? 'گذشت' : 'رفت'}`,
        `آخرین قیمت ${fa(last)} ${unit}، ${fa(percent)}٪ ${up ? 'بالاتر' : 'پایین‌تر'} از سطح شما`,
      ],
      english: [
        `${of.english} (${of.symbol}) is ${up ? 'above' : 'below'} ${en(of.price)} ${of.unit}`,
        `last price ${en(last)}, your level ${en(of.price)}`,
      ],
      payload: [
        `last=${last}`,
        `level=${of.price}`,
        `direction=${up ? 'above' : 'below'}`,
        `unit=${of.unit}`,
      ],
    }
  },
  volume(of, shown) {
    const times = Math.round(shown.volumeRatio() * 10) / 10
    return {
      persian: [
        `حجم معاملات ${of.symbol} به ${fa(times)} برابر میانگین ۲۰روزه رسید`,
        `${of.persian}: تغییر حجم معاملات`,
      ],
      english: [`${of.symbol} trades ${times}x its 20-day volume`, `${of.english}: volume changed`],
      payload: [`volume_vs_20d=${times}`],
    }
  },
  indicator(of, shown) {
    const rsi = Math.round(shown.rsi())
    const weak = rsi < 50
    return {
      persian: [
        `شاخص قدرت نسبی ${of.symbol} به ${fa(rsi)} رسید`,
        `${of.persian} رو به ${weak ? 'ضعف' : 'قدرت'} است`,
      ],
      english: [`${of.symbol}: RSI(14) at ${rsi}`, `${of.english} ${weak ? 'weakens' : 'gains strength'}`],
      payload: [`rsi=${rsi}`, 'period=14'],
    }
  },
  filing(of, shown) {
    const months = shown.periodMonths()
    return {
      persian: [
        `${of.symbol}: صورت‌های مالی ${fa(months)} ماهه منتشر شد`,
        `اطلاعیهٔ تازه‌ای از ${of.persian} در سامانهٔ افشا`,
      ],
      english: [`${of.english}: ${months}-month statements filed`, `a new letter on ${of.symbol}`],
      payload: [`periodMonths=${months}`],
    }
  },
}

/** One instrument that entered a screen, or several at once, which the API shows without a symbol. */
function screenText(screen: Screen, of: Listing | null, random: Random): BilingualText {
  if (of)
    return {
      persian: [`${of.symbol} وارد غربال «${screen.name}» شد`, `${of.persian} همهٔ شرط‌های غربال را دارد`],
      english: [`${of.symbol} entered your screen “${screen.name}”`, `${of.english} now passes it`],
      payload: [`screenId=${screen.id}`, 'entered=1'],
    }
  const count = 2 + random.int(7)
  return {
    persian: [`${fa(count)} نماد وارد غربال «${screen.name}» شدند`, 'فهرست غربال تغییر کرد'],
    english: [`${count} instruments entered your screen “${screen.name}”`, 'the screen has new members'],
    payload: [`screenId=${screen.id}`, `entered=${count}`],
  }
}
