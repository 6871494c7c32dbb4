import { html } from '../../../alert/text/html.ts'
import { formatDuration } from '../../../lib/duration.ts'
import { englishText } from '../foreign.ts'
import type { PageWords } from './en.ts'
import { persianFinding } from './fa-findings.ts'
import { persianHeld, persianReasons } from './fa-reasons.ts'

/** The words of the status page in Persian. */
export const persian: PageWords = {
  language: 'fa',
  direction: 'rtl',
  count,
  duration,
  lag: (span, isMore) => `${isMore ? 'بیش از ' : ''}${span}`,
  percent: (whole) => `${count(whole)}٪`,
  list: '، ',
  // Beside Persian digits a dot is read as a zero.
  dot: '، ',
  fromBelow: englishText,
  headline: ({ ready, findings }) => {
    const broken = findings.filter(({ level }) => level === 'failed').length
    if (findings.length === 0) return 'هشدارها تحویل می‌شوند'
    if (broken === 0) return ready ? `آماده، با ${count(findings.length)} مورد برای بررسی` : 'آماده نیست'
    return `${ready ? 'آماده است، ولی' : 'آماده نیست:'} ${count(broken)} مورد خراب است`
  },
  finding: (finding, times) => persianFinding(finding, { count, duration, ...times }),
  allWell: (sources, sinks) =>
    `ردیس پاسخ می‌دهد، از ${count(sources)} منبع پرس‌وجو می‌شود و ${count(sinks)} مقصد تحویل می‌گیرد.`,
  up: (span) => `روشن از ${span} پیش`,
  only: (role) => (role === 'poller' ? 'تنها پرس‌وجو' : 'تنها ارسال'),
  noStatus: 'اکنون نمی‌توان وضعیت را خواند',
  noStory: 'اکنون نمی‌توان هشدار را خواند',
  noAlert: 'چنین هشداری نیست',
  notKnown: (name) => `هشدار ${name} (دیگر) شناخته نیست.`,
  tooLate: 'در زمان مجاز نرسید.',
  logSays: 'دلیل آن در گزارش‌های پل آمده است.',
  lagSeen: 'از وقوع تا دیدن',
  lagDone: 'از وقوع تا تحویل',
  lagNone: 'هنوز اندازه‌ای نیست',
  p95: (span, slowest = false) => `صدک ۹۵: ${span}${slowest ? '، کندترین' : ''}`,
  queues: 'در صف‌ها',
  queuesNote: 'در انتظار، در حال ارسال، برای بعد',
  today: 'تحویل امروز',
  bySinks: (sinks) => `از ${count(sinks)} مقصد`,
  letters: 'تحویل‌نشده‌ها',
  lettersNote: 'تا تلاش دوباره یا حذف',
  noToken: 'برای کار از همین صفحه، توکن مدیر را در پیکربندی بگذارید.',
  foot: { status: 'وضعیت برای برنامه‌ها', metrics: 'سنجه‌ها', ready: 'آمادگی' },
  stale: 'پل پاسخ نمی‌دهد. این صفحه آخرین پاسخ آن را نشان می‌دهد.',

  sources: 'منبع‌ها',
  unrouted: (alerts) => `${count(alerts)} هشدار مسیری نداشت`,
  quarantined: (rows) => `${count(rows)} ردیف خوانده نشد و کنار گذاشته شد`,
  fellOut: (rows) => `نسخهٔ ${count(rows)} ردیف از دست رفت، چون قرنطینه پر بود`,
  sourceStates: {
    starting: 'در حال آغاز',
    running: 'در حال پرس‌وجو',
    catching_up: 'در حال جبران',
    retrying: 'تلاش دوباره',
    failing: 'ناموفق',
    budget_spent: 'بودجه تمام شد',
    queues_full: 'صف‌ها پر است',
    standby: 'نسخهٔ دیگری پرس‌وجو می‌کند',
    stopped: 'ایستاده',
  },
  whyNext: {
    first: 'نخستین پرس‌وجو',
    fixed: 'با آهنگ ثابت',
    even: 'پخش یکنواخت واحدها',
    expected: 'اکنون انتظار هشدار می‌رود',
    burst: 'هشدارهایی آمد و شاید باز بیاید',
    floor: 'ساعت‌های آرام، بی‌انتظار بی‌پایان',
    ceiling: 'با بیشترین سرعت مجاز',
    announced: 'ارزیابی قاعده‌ها اعلام شده است',
    mark: 'هشدارها سر وقت می‌آیند',
    hot: 'به خواست کاربر',
    catch_up: 'صفحه‌های بیشتری مانده است',
    retry: 'درخواست پیش ناموفق بود',
    budget_spent: 'تا شروع دوباره چیزی نمانده است',
  },
  noBudget: 'بودجه هنوز دانسته نیست.',
  lastPoll: 'پرس‌وجوی پیشین',
  nextPoll: 'پرس‌وجوی بعدی',
  feedComplete: 'خواندن کامل',
  behind: 'صفحه‌های قدیمی‌تر مانده است',
  process: (machine, id, since) => html`${englishText(machine)}، پردازهٔ ${id}، روشن از ${since}`,
  polledBy: (process) => html`پرس‌وجو با ${process}`,
  plan: (alerts, firing) =>
    html`برنامه ${alerts > 0 ? `آموخته از ${count(alerts)} هشدار` : 'فعلاً بر پایهٔ پیکربندی'}؛ زمان هشدارها: ${englishText(firing)}`,
  hotUntil: (when) => html` به درخواست کاربر بیشتر پرس‌وجو می‌شود؛ پایان آن ${when}.`,
  silentRules: (silent, rules, when) =>
    html`شاید ${count(silent)} قاعده از ${count(rules)} قاعده هشدار ندهد (خوانده‌شده ${when}):`,
  andMore: (rest) => `و ${count(rest)} مورد دیگر`,
  notFollowed: (rules) =>
    ` ارزیابی ${count(rules)} قاعده از پیش اعلام می‌شود، ولی پرس‌وجوها از آن پیروی نمی‌کنند.`,
  followed: (rules, names) =>
    html` پرس‌وجوها از ارزیابی‌های اعلام‌شدهٔ ${count(rules)} قاعده پیروی می‌کنند (${names}).`,
  unitsUsed: (used, all) => html`<b>${count(used)}</b> از ${count(all)} واحد`,
  resets: (when) => html`شروع دوباره ${when}`,
  used: (percent) => `${percent} مصرف شده`,
  dayOver: (percent) => `${percent} از روز گذشته`,
  budgetBar: (used, over) => `${used} از واحدها مصرف شده، ${over} از روز گذشته`,
  spentFor: (parts) => `مصرف واحدها: ${parts}`,
  purposes: {
    poll: 'پرس‌وجو',
    walk: 'جبران',
    sweep: 'ردیف‌های دیررسیده',
    history: 'پیشینه',
    rules: 'قاعده‌ها',
    context: 'زمینه',
    api: 'فرمان‌ها',
    unknown: 'نامعلوم',
  },
  hour: (from, planned, past) =>
    `${from}: ${past ? `${count(past.units)} واحد مصرف شد، ${count(past.alerts)} هشدار دیده شد، ` : ''}${count(planned)} پرس‌وجو در برنامه`,
  day: (units, alerts, planned) =>
    `امروز ${count(units)} واحد برای ${count(alerts)} هشدار؛ برنامه تا این دم ${count(planned)} است.`,
  sharedDay: (sources) =>
    `واحدها مصرف همهٔ ${count(sources)} منبع این حساب است؛ هشدارها و برنامه تنها از این منبع است.`,
  legend: { spent: 'واحدهای مصرف‌شده', planned: 'پرس‌وجوهای برنامه', seen: 'هشدارهای دیده‌شده' },
  hot: 'پرس‌وجوی بیشتر',
  hotAsk: (name) => `از منبع ${name} تا چهار برابر بیشتر پرس‌وجو می‌شود، در حد بودجهٔ خود آن.`,

  sinks: 'مقصدها',
  sinkHeads: {
    sink: 'مقصد',
    state: 'وضعیت',
    waiting: 'در انتظار',
    active: 'در حال ارسال',
    delayed: 'برای بعد',
    dead: 'تحویل‌نشده',
    today: 'امروز',
    lag: 'تأخیر (صدک ۵۰ و ۹۵)',
    last: 'آخرین نتیجه',
  },
  sinkStates: { active: 'تحویل می‌گیرد', paused: 'متوقف', open: 'در استراحت', stuck: 'گیر کرده' },
  refuses: 'نمی‌پذیرد',
  putsOff: 'به بعد می‌اندازد',
  unknownState: 'دانسته نیست',
  results: { delivered: 'تحویل شد', retry: 'دوباره تلاش می‌شود', dead: 'رها شد' },
  nothingSent: 'هنوز چیزی فرستاده نشده',
  hours: (done, dead) => `در ۲۴ ساعت گذشته ${count(done)} هشدار تحویل شد و ${count(dead)} هشدار رها شد`,
  queueCurve: (most) => `صف در ۲۴ ساعت گذشته، حداکثر ${most}`,
  sendCurve: (most) => `زمان هر ارسال در ۲۴ ساعت گذشته، میانگین هر ربع ساعت حداکثر ${most}`,
  sendTakes: (span) => `هر ارسال ${span}`,
  ends: (when) => html`پایان: ${when}`,
  since: (when) => html`آغاز: ${when}`,
  askedForPause: (ends) => html`این مقصد درنگ خواسته است؛ پایان: ${ends}`,
  nextProbe: (when) => html`، آزمایش بعدی ${when}`,
  takes: (span) => `، ${span} زمان می‌برد`,
  pause: 'توقف',
  pauseAsk: (name) => `هشدارهای ${name} در صف آن، در همهٔ نسخه‌ها، می‌مانند تا زمان سر آید یا ادامه داده شود.`,
  pauseFor: 'برای (خالی: تا ادامه)',
  resume: 'ادامه',
  resumeAsk: (name) => `آنچه در انتظار ${name} است فرستاده می‌شود.`,
  probe: 'آزمایش اکنون',
  probeAsk: (name) => `همین حالا یک هشدار به ${name} فرستاده می‌شود، بی‌انتظار آزمایش بعدی.`,
  retryDead: 'تلاش دوباره',
  dropDead: 'حذف تحویل‌نشده‌ها',
  retryAsk: (letters, where, areMore) =>
    `${areMore ? 'دست‌کم ' : ''}${count(letters)} هشدار تحویل‌نشدهٔ ${where} با تلاش‌های تازه به صف بازمی‌گردد؛ آنچه در این میان برسد نیز.`,
  dropAsk: (letters, where, areMore) =>
    `${areMore ? 'دست‌کم ' : ''}${count(letters)} هشدار تحویل‌نشدهٔ ${where} برای همیشه حذف می‌شود؛ آنچه در این میان برسد نیز.`,

  letterHeads: {
    sink: 'مقصد',
    reason: 'دلیل',
    count: 'تعداد',
    first: 'نخستین',
    last: 'واپسین',
    sample: 'یک نمونه',
  },
  grouped: (looked, total) => `گروه‌بندی ${count(looked)} مورد تازه از ${count(total)}`,
  retryGroup: 'تلاش دوبارهٔ گروه',
  dropGroup: 'حذف گروه',
  copyCommand: 'کپی فرمان',

  latest: 'تازه‌ترین هشدارها',
  older: 'هشدارهای قدیمی‌تر',
  olderLink: 'قدیمی‌تر',
  all: 'همه',
  filterLabel: 'پالایش بر پایهٔ وضعیت',
  rowStates: {
    waiting: 'در انتظار',
    active: 'در حال ارسال',
    delayed: 'تلاش دوباره',
    delivered: 'تحویل شد',
    dead: 'تحویل‌نشده',
    held: 'نگه‌داشته',
  },
  sentLater: 'برای بعد',
  noDeliveries: 'اکنون نمی‌توان تحویل‌ها را خواند.',
  noneLikeThat: 'چنین چیزی نیست.',
  noneAmong: (looked) => `میان ${count(looked)} هشدار چنین چیزی نیست؛ هشدارهای قدیمی‌تری هم هست.`,
  noneYet: 'هنوز هشداری دیده نشده است.',
  seenAfter: (span) => `پس از ${span} دیده شد`,
  nextTry: (when) => html`تلاش بعدی ${when}`,
  filters: {
    symbol: 'نماد',
    kind: 'نوع',
    rule: 'قاعده',
    source: 'منبع',
    since: 'از',
    until: 'تا',
    id: 'شناسه',
  },

  back: '→ همهٔ هشدارها',
  rules: (rules, ids) => html`${rules === 1 ? 'قاعدهٔ' : 'قاعده‌های'} ${ids}`,
  fired: 'وقوع',
  seen: 'دیده شد',
  byPoll: (when, page) =>
    html`در پرس‌وجوی ${when}${page === null || page === 1 ? null : ` در صفحهٔ ${count(page)}`}`,
  later: (span) => `، ${span} پس از آن`,
  heldBack: 'نگه داشته شد',
  heldFrom: (sinks) => `از ${sinks}: `,
  droppedFrom: (sink, when) => html`<b>حذف شد</b> از ${sink} به دست اپراتور، ${when}`,
  held: persianHeld,
  noSink: 'بی‌مقصد',
  reasons: persianReasons,
  noRoute: 'هیچ مسیری مقصدی برای آن نداشت',
  deliveries: 'تحویل‌ها',
  byRoutes: (routes, names) => html`با ${routes === 1 ? 'مسیر' : 'مسیرهای'} ${names}`,
  nothingWasSent: 'هنوز چیزی فرستاده نشد',
  sinkIs: (state) => `این مقصد ${state} است`,
  sinkIsGone: 'این مقصد در پیکربندی نیست؛ هشدارهای مانده را می‌توان به مقصد دیگری برد یا حذف کرد',
  sentAgain: 'به خواست کاربر دوباره فرستاده شد',
  lastTime: (when) => html`، بار آخر ${when}`,
  took: (span) => `، ${span} طول کشید`,
  without: (what) => html`بدون زمینه: ${what}`,
  retry: 'تلاش دوباره',
  recipients: (sink, recipients) => `${sink} (${count(recipients)} گیرنده)`,
  retryOneAsk: (name, sink) => `${name} با تلاش‌های تازه به صف ${sink} بازمی‌گردد.`,
  drop: 'حذف',
  dropOneAsk: (name, sink) => `هشدار تحویل‌نشدهٔ ${name} در ${sink} برای همیشه حذف می‌شود.`,
  again: 'ارسال دوباره',
  againAsk: (name, sink) => `${name} بار دیگر با همان شناسه به ${sink} فرستاده می‌شود.`,
  silence: 'بی‌صدا کردن موارد مانند آن',
  silenceAsk:
    'هشدارهایی که با همهٔ این‌ها می‌خوانند چندی از همهٔ مقصدها نگه داشته می‌شوند. ثبت می‌شوند و می‌توان بعد آن‌ها را فرستاد.',
  silences: 'بی‌صدایی‌ها',
  noSilences: 'هیچ',
  newSilence: 'افزودن بی‌صدایی',
  everyAlert: 'همهٔ هشدارها',
  silenceTime: (starts, ends) =>
    starts === null ? html`پایان: ${ends}` : html`آغاز: ${starts}، پایان: ${ends}`,
  endSilence: 'پایان بی‌صدایی',
  endSilenceAsk: (id) =>
    `بی‌صدایی ${id} پایان می‌یابد. آنچه نگه داشته است نگه‌داشته می‌ماند و می‌توان آن را دوباره فرستاد.`,
  fields: { symbol: 'نماد', kind: 'نوع', rule: 'قاعده', for: 'برای', why: 'چرا' },

  actions: 'کارهای کاربران',
  did: {
    reload: 'خواندن دوبارهٔ پیکربندی',
    'retry dead letters': 'تلاش دوبارهٔ تحویل‌نشده‌ها',
    'drop dead letters': 'حذف تحویل‌نشده‌ها',
    'send again': 'ارسال دوباره',
    'retry unreadable rows': 'تلاش دوبارهٔ ردیف‌های ناخوانا',
    'drop unreadable rows': 'حذف ردیف‌های ناخوانا',
    'pause sink': 'توقف مقصد',
    'resume sink': 'ادامهٔ مقصد',
    'probe sink': 'آزمایش مقصد',
    'poll more often': 'پرس‌وجوی بیشتر',
    'poll as planned': 'پایان پرس‌وجوی بیشتر',
    silence: 'بی‌صدا کردن',
    'end silence': 'پایان بی‌صدایی',
    'move orphan': 'جابه‌جایی بی‌صاحب',
    'drop orphan': 'حذف بی‌صاحب',
  },
  alerts: (alerts) => `${count(alerts)} هشدار`,
  idsMore: (rest) => ` و ${count(rest)} مورد دیگر`,
  quote: (text) => html` «${text}»`,
  byWhom: (token, address) => html`${englishText(token)}، از ${englishText(address)}`,
  ago: (span) => `${span} پیش`,
  ahead: (span) => `${span} دیگر`,
  now: 'همین حالا',
  noTime: 'در زمانی نامعلوم',
}

function count(number: number | null): string {
  return number === null ? '–' : number.toLocaleString('fa-IR')
}

/** `۱ دقیقه و ۲۰ ثانیه` */
function duration(ms: number): string {
  if (!Number.isFinite(ms)) return 'هرگز'
  return formatDuration(ms)
    .replace(
      /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g,
      (_all, figure, unit) => `${count(Number(figure))} ${units[unit]}`,
    )
    .replace(/(?<=\p{L}) (?=[۰-۹])/gu, ' و ')
}

const units: Record<string, string> = { ms: 'میلی‌ثانیه', s: 'ثانیه', m: 'دقیقه', h: 'ساعت', d: 'روز' }
