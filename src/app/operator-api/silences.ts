import type { SilenceView } from '../../admin/delivery-view.ts'
import type { SilencesPort } from '../../admin/ports.ts'
import type { Clock } from '../../lib/clock.ts'
import type { SilenceStore, StoredSilence } from '../../store/silences.ts'

/** The silences as the API sets and shows them. */
export function silencesPort(store: () => SilenceStore, clock: Clock): SilencesPort {
  return {
    async list() {
      return (await store().list(clock.now())).map(silenceView)
    },
    async add(silence) {
      return silenceView(await store().add(silence, clock.now()))
    },
    expire: (id) => store().expire(id),
  }
}

function silenceView({ id, written, startsAtMs, endsAtMs, comment }: StoredSilence): SilenceView {
  const iso = (ms: number) => new Date(ms).toISOString()
  return { id, match: written, startsAt: iso(startsAtMs), endsAt: iso(endsAtMs), comment }
}
