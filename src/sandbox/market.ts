/**
 * The synthetic market: shares of three boards, funds, gold and currencies. All figures are invented. Some instruments carry
 * names that people know; the others are made from parts, the same in every sandbox. What the document of the API does not
 * name (markets but `gold`, `currency` and `tse`, units, industries) is the sandbox's own.
 */
export interface Listing {
  readonly id: number
  readonly symbol: string
  readonly slug: string
  readonly persian: string
  readonly english: string
  /** About which the price moves. */
  readonly price: number
  readonly unit: 'rial' | 'toman' | 'usd'
  readonly market: 'tse' | 'gold' | 'currency'
  /** As `group` and `exchange` of the board have it; null for what no exchange lists. */
  readonly group: 'equity' | 'fund' | 'fixed_income' | 'commodity'
  readonly venue: 'bourse' | 'fara' | 'fara_base' | null
  readonly industry: string | null
}

const venues = ['bourse', 'fara', 'fara_base'] as const
const [metals, cars, oil, banks] = [
  'فلزات اساسی',
  'خودرو و ساخت قطعات',
  'فرآورده‌های نفتی',
  'بانک‌ها و مؤسسات اعتباری',
]

type Names = readonly [symbol: string, slug: string, persian: string, english: string]

function share(
  id: number,
  [symbol, slug, persian, english]: Names,
  price: number,
  industry: string,
): Listing {
  const venue = venues[id % 3] ?? null
  return {
    id,
    symbol,
    slug,
    persian,
    english,
    price,
    venue,
    industry,
    unit: 'rial',
    market: 'tse',
    group: 'equity',
  }
}

function offExchange(
  id: number,
  [symbol, slug, persian, english]: Names,
  price: number,
  market: 'gold' | 'currency',
  unit: 'toman' | 'usd' = 'toman',
): Listing {
  return {
    id,
    symbol,
    slug,
    persian,
    english,
    price,
    unit,
    market,
    group: 'commodity',
    venue: null,
    industry: null,
  }
}

/** Those that the caller's alert rules watch. */
export const watched: readonly [Listing, ...Listing[]] = [
  share(101, ['فولاد', 'foolad', 'فولاد مبارکه اصفهان', 'Mobarakeh Steel'], 5_230, metals),
  share(102, ['خودرو', 'khodro', 'ایران خودرو', 'Iran Khodro'], 2_870, cars),
  share(103, ['شپنا', 'shepna', 'پالایش نفت اصفهان', 'Isfahan Oil Refining'], 4_410, oil),
  share(104, ['وبملت', 'vabmellat', 'بانک ملت', 'Bank Mellat'], 2_150, banks),
  share(105, ['فملی', 'fameli', 'ملی صنایع مس ایران', 'National Iranian Copper'], 7_340, metals),
  share(
    106,
    ['شستا', 'shasta', 'سرمایه‌گذاری تأمین اجتماعی', 'Social Security Investment'],
    1_180,
    'سرمایه‌گذاری‌ها',
  ),
  share(107, ['کگل', 'kegol', 'معدنی و صنعتی گل‌گهر', 'Gol Gohar Mining'], 3_960, 'استخراج کانه‌های فلزی'),
  share(108, ['شبندر', 'shabandar', 'پالایش نفت بندرعباس', 'Bandar Abbas Oil Refining'], 8_720, oil),
  share(109, ['وتجارت', 'vatejarat', 'بانک تجارت', 'Tejarat Bank'], 1_640, banks),
  share(110, ['خساپا', 'khesapa', 'سایپا', 'Saipa'], 2_020, cars),
  offExchange(201, ['IR_GOLD_18K', 'gold-18k', 'طلای ۱۸ عیار', '18K gold'], 7_850_000, 'gold'),
  offExchange(202, ['IR_COIN_EMAMI', 'coin-emami', 'سکهٔ امامی', 'Emami coin'], 86_400_000, 'gold'),
  offExchange(203, ['USD_FREE', 'usd-free', 'دلار آزاد', 'free-market dollar'], 93_600, 'currency'),
  offExchange(204, ['XAU_USD', 'gold-ounce', 'اونس جهانی طلا', 'gold ounce'], 3_320, 'gold', 'usd'),
]

/** An industry: letter of its symbols, in both scripts, what its companies are called, and its name. */
const industries = [
  ['ف', 'f', 'فولاد', 'Steel', metals],
  ['خ', 'kh', 'قطعات', 'Auto Parts', cars],
  ['ش', 'sh', 'پتروشیمی', 'Petrochemical', 'محصولات شیمیایی'],
  ['و', 'v', 'بانک', 'Bank', banks],
  ['ک', 'k', 'معدن', 'Mining', 'استخراج کانه‌های فلزی'],
  ['س', 's', 'سیمان', 'Cement', 'سیمان، آهک و گچ'],
  ['غ', 'gh', 'صنایع غذایی', 'Foods', 'محصولات غذایی'],
  ['د', 'd', 'داروسازی', 'Pharma', 'مواد و محصولات دارویی'],
  ['ق', 'q', 'قند', 'Sugar', 'قند و شکر'],
  ['ر', 'r', 'رایانه', 'Computing', 'رایانه و فعالیت‌های وابسته'],
  ['ح', 'h', 'حمل‌ونقل', 'Transport', 'حمل‌ونقل و انبارداری'],
] as const
/** A place: the rest of a symbol, in both scripts, and its name. */
const places = `
  نیر nir نیریز, سپا sepa سپاهان, کرم kerm کرمان, خوز khuz خوزستان, شاه shah شاهرود, تبر tabr تبریز,
  ارو oru ارومیه, زنج zanj زنجان, قزو qazv قزوین, همد hamd همدان, لرس lors لرستان, یزد yazd یزد,
  بوش bush بوشهر, گیل gil گیلان, مازن mazn مازندران, گرگ gorg گرگان, نیش nish نیشابور, بیر birj بیرجند,
  زاه zahd زاهدان, سمن semn سمنان, ساو save ساوه, اراک arak اراک, دزف dezf دزفول, ایل ilam ایلام
`
  .trim()
  .split(/,\s*/)
  .map((text) => text.split(' ') as [string, string, string])

/** A price between 800 and 20,000, each at another place of the range. */
const priceOf = (id: number) => 800 + Math.round(((id * 7_919) % 997) * 19.3)

const companies = industries.flatMap(([letter, latin, word, english, industry], row) =>
  places.map(([rest, slug, place], column) => {
    const id = 1_001 + row * 100 + column
    const name = `${slug[0]?.toUpperCase()}${slug.slice(1)} ${english}`
    return share(id, [`${letter}${rest}`, `${latin}${slug}`, `${word} ${place}`, name], priceOf(id), industry)
  }),
)

/** Every second one holds shares, the others bonds. */
const funds = places.map(([rest, slug, place], index): Listing => {
  const isBond = index % 2 === 1
  const id = 3_001 + index
  const names: Names = [`آ${rest}`, `a${slug}`, `صندوق ${place}`, `${slug} fund`]
  const fund = share(id, names, isBond ? 10_000 + index * 150 : priceOf(id), 'صندوق‌های سرمایه‌گذاری')
  return { ...fund, venue: 'fara', group: isBond ? 'fixed_income' : 'fund' }
})

const currencies = ['EUR', 'GBP', 'AED', 'TRY', 'CNY', 'IQD', 'JPY', 'CHF'].map((code, index) =>
  offExchange(
    205 + index,
    [`${code}_FREE`, `${code.toLowerCase()}-free`, `${code} آزاد`, `free-market ${code}`],
    [101_800, 118_900, 25_480, 2_230, 13_120, 71, 610, 107_500][index] ?? 0,
    'currency',
  ),
)

const coins = ['half', 'quarter', 'gram'].map((size, index) =>
  offExchange(
    221 + index,
    [
      `IR_COIN_${size.toUpperCase()}`,
      `coin-${size}`,
      ['نیم‌سکه', 'ربع‌سکه', 'سکهٔ گرمی'][index] ?? size,
      `${size} coin`,
    ],
    [44_900_000, 26_100_000, 13_300_000][index] ?? 0,
    'gold',
  ),
)

export const instruments: readonly [Listing, ...Listing[]] = [
  ...watched,
  ...companies,
  ...funds,
  ...currencies,
  ...coins,
]

const byName = new Map(
  instruments.flatMap((each) =>
    [String(each.id), each.symbol, each.slug].map((name) => [name, each] as const),
  ),
)

/** By id, symbol or slug, exactly. */
export function instrumentOf(name: string | undefined): Listing | undefined {
  return byName.get(name ?? '')
}

export interface Screen {
  readonly id: number
  readonly name: string
}

export const screens: readonly [Screen, ...Screen[]] = [
  { id: 31, name: 'پول هوشمند' },
  { id: 32, name: 'Cheap and growing' },
]
