/** The words of the form by which the list of alerts is searched, in every language. */
export const searchWords = {
  en: {
    search: 'Search',
    any: 'any',
    /** How an id is written, where it was written otherwise. */
    idForm: 'An id, such as 4711 or main.4711',
    labels: {
      symbol: 'Symbol',
      kind: 'Kind',
      rule: 'Rule',
      id: 'Id',
      sink: 'Sink',
      source: 'Source',
      state: 'State',
      since: 'From',
      until: 'To',
    },
  },
  fa: {
    search: 'جست‌وجو',
    any: 'همه',
    idForm: 'شناسه‌ای مانند 4711 یا main.4711',
    labels: {
      symbol: 'نماد',
      kind: 'نوع',
      rule: 'قاعده',
      id: 'شناسه',
      sink: 'مقصد',
      source: 'منبع',
      state: 'وضعیت',
      since: 'از',
      until: 'تا',
    },
  },
} as const
