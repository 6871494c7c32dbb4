import type { Instrument, Screen } from './market.ts'
import type { Random } from './random.ts'

/** The texts of the alerts of each kind: mostly in Persian, sometimes in English. */
export type AlertKind = 'price' | 'volume' | 'indicator' | 'filing' | 'screen'

export interface AlertText {
  readonly headline: string
  /** null where the API gives no reason, as it sometimes does. */
  readonly why: string | null
  readonly payload: readonly string[]
}

/** What an alert is about: an instrument, or what happened in a screen. */
export type Subject =
  | { readonly kind: Exclude<AlertKind, 'screen'>; readonly instrument: Instrument }
  | { readonly kind: 'screen'; readonly screen: Screen; readonly instrument: Instrument | null }

export function alertText(subject: Subject, random: Random): AlertText {
  const text =
    subject.kind === 'screen'
      ? screenText(subject.screen, subject.instrument, random)
      : textMakers[subject.kind](subject.instrument, random)
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
const fa = (value: number) => value.toLocaleString('fa-IR')
const en = (value: number) => value.toLocaleString('en-US')

const textMakers: Readonly<
  Record<Exclude<AlertKind, 'screen'>, (of: Instrument, random: Random) => BilingualText>
> = {
  price(of, random) {
    const up = random.int(2) === 0
    const percent = tenths(1, 6, random)
    const last = Math.round(of.price * (1 + (up ? percent : -percent) / 100))
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
  volume(of, random) {
    const times = tenths(2, 6, random)
    return {
      persian: [
        `حجم معاملات ${of.symbol} به ${fa(times)} برابر میانگین ۲۰روزه رسید`,
        `${of.persian}: جهش حجم معاملات`,
      ],
      english: [`${of.symbol} trades ${times}x its 20-day volume`, `${of.english}: volume surge`],
      payload: [`volume_vs_20d=${times}`],
    }
  },
  indicator(of, random) {
    const oversold = random.int(2) === 0
    const rsi = oversold ? 22 + random.int(8) : 70 + random.int(12)
    return {
      persian: [
        `شاخص قدرت نسبی ${of.symbol} به ${fa(rsi)} رسید`,
        `${of.persian} در محدودهٔ اشباع ${oversold ? 'فروش' : 'خرید'} است`,
      ],
      english: [
        `${of.symbol}: RSI(14) at ${rsi}`,
        `${of.english} is ${oversold ? 'oversold' : 'overbought'}`,
      ],
      payload: [`rsi=${rsi}`, 'period=14'],
    }
  },
  filing(of, random) {
    const months = random.pick([1, 3, 6, 9, 12])
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
function screenText(screen: Screen, of: Instrument | null, random: Random): BilingualText {
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

/** A figure with one decimal, from `least` up to, but not, `least + range`. */
function tenths(least: number, range: number, random: Random): number {
  return least + random.int(range * 10) / 10
}
