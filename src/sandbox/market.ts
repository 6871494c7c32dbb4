/** The synthetic market. All figures are invented. */
export interface Instrument {
  readonly id: number
  readonly symbol: string
  readonly slug: string
  readonly persian: string
  readonly english: string
  readonly price: number
  readonly unit: 'rial' | 'toman' | 'usd'
}

const stock = (
  id: number,
  symbol: string,
  slug: string,
  persian: string,
  english: string,
  price: number,
) => ({
  id,
  symbol,
  slug,
  persian,
  english,
  price,
  unit: 'rial' as const,
})

export const instruments: readonly [Instrument, ...Instrument[]] = [
  stock(101, 'فولاد', 'foolad', 'فولاد مبارکه اصفهان', 'Mobarakeh Steel', 5_230),
  stock(102, 'خودرو', 'khodro', 'ایران خودرو', 'Iran Khodro', 2_870),
  stock(103, 'شپنا', 'shepna', 'پالایش نفت اصفهان', 'Isfahan Oil Refining', 4_410),
  stock(104, 'وبملت', 'vabmellat', 'بانک ملت', 'Bank Mellat', 2_150),
  stock(105, 'فملی', 'fameli', 'ملی صنایع مس ایران', 'National Iranian Copper', 7_340),
  stock(106, 'شستا', 'shasta', 'سرمایه‌گذاری تأمین اجتماعی', 'Social Security Investment', 1_180),
  stock(107, 'کگل', 'kegol', 'معدنی و صنعتی گل‌گهر', 'Gol Gohar Mining', 3_960),
  stock(108, 'شبندر', 'shabandar', 'پالایش نفت بندرعباس', 'Bandar Abbas Oil Refining', 8_720),
  stock(109, 'وتجارت', 'vatejarat', 'بانک تجارت', 'Tejarat Bank', 1_640),
  stock(110, 'خساپا', 'khesapa', 'سایپا', 'Saipa', 2_020),
  { ...stock(201, 'IR_GOLD_18K', 'gold-18k', 'طلای ۱۸ عیار', '18K gold', 7_850_000), unit: 'toman' },
  { ...stock(202, 'IR_COIN_EMAMI', 'coin-emami', 'سکهٔ امامی', 'Emami coin', 86_400_000), unit: 'toman' },
  { ...stock(203, 'USD_FREE', 'usd-free', 'دلار آزاد', 'free-market dollar', 93_600), unit: 'toman' },
  { ...stock(204, 'XAU_USD', 'gold-ounce', 'اونس جهانی طلا', 'gold ounce', 3_320), unit: 'usd' },
]

export interface Screen {
  readonly id: number
  readonly name: string
}

export const screens: readonly [Screen, ...Screen[]] = [
  { id: 31, name: 'پول هوشمند' },
  { id: 32, name: 'Cheap and growing' },
]
