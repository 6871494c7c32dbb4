import { tokenHeader, versionHeader } from '../../telemetry/version.ts'

/** The part of the script that carries out buttons; within the function of `script.ts`. */
export const actScript = `
  const call = async (method, path, body) => {
    // Typed on a keyboard of another language: a browser sends none of it, so no answer would say that it is wrong.
    if (/[^\\x20-\\xff]/.test(token)) {
      token = undefined
      throw new Error(words.noToken)
    }
    const lost = () => { throw Object.assign(new Error(words.noAnswer), { isLost: true }) }
    const answer = await fetch(path, {
      method,
      signal: AbortSignal.timeout(15000),
      // Not Authorization: a proxy may need that for a login of its own, which the browser then adds.
      headers: { '${tokenHeader}': token, accept: 'application/json', ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    }).catch(lost)
    // What a proxy says may be JSON, too, and is nothing of ours.
    const isOurs = answer.headers.has('${versionHeader}')
    const said = isOurs ? await answer.json().catch(() => undefined) : undefined
    if (answer.ok && said) return said
    // Of a proxy, which got no answer of the bridge, or wants a login first.
    if (answer.ok || (answer.status >= 502 && !said)) lost()
    // Every refusal of the bridge has words: what a proxy refuses says nothing of the token.
    if (isOurs && [401, 403, 429].includes(answer.status)) token = undefined
    throw Object.assign(new Error(said?.detail ?? fill(words.answered, String(answer.status))), { status: answer.status })
  }
  const timeOf = (iso) => new Date(iso).toLocaleString(words.locale, { timeZone: words.timeZone, dateStyle: 'medium', timeStyle: 'short' })
  const until = (iso) => fill(words.until, timeOf(iso))
  const done = (what) => fill(words.doneThat, what)
  const orders = ['queued', 'retried', 'dropped', 'moved']
  const countsOf = (said) => orders.filter((name) => name in said).map((name) => fill(words.counts[name], said[name])).join(words.list)
  const wordsOf = (said) => {
    const counts = countsOf(said)
    const missing = said.unknown?.length ? fill(words.missing, said.unknown.join(words.list)) : ''
    if (counts) return fill(said.cursor ? words.soFar : words.doneThat, counts) + missing
    if (said.matching !== undefined) return fill(words.matching, said.matching, said.looked) + (said.partial ? words.partial : '') + (said.sample.length ? fill(words.suchAs, said.sample.map(({ headline }) => '\\u2068' + fill(words.quote, headline) + '\\u2069').join(words.list)) : '') + '.'
    if (said.state) return done(fill(words.state, said.sink ?? said.source, words.states[said.state] ?? said.state) + (said.until ? ' ' + until(said.until) : ''))
    if (said.data?.endsAt) return done(fill(words.silenced, timeOf(said.data.endsAt)))
    if (said.until) return done(until(said.until))
    return words.done
  }
  /** Orders come in portions: until all is done. */
  const carryOut = async (act, body) => {
    const { method = 'POST', path } = act
    let said = await call(method, path, body)
    const total = { ...said }
    while (said.cursor) {
      said = await call(method, path, { ...body, cursor: said.cursor }).catch((error) => {
        throw Object.assign(error, { message: fill(words.brokeOff, countsOf(total)) + ' ' + error.message })
      })
      total.cursor = said.cursor
      for (const name of orders) if (name in said) total[name] += said[name]
      sayIn(act, wordsOf(total))
    }
    return total
  }
  const say = (text, failed) => {
    $('-said').textContent = text
    $('-said').className = failed ? 'failed' : ''
  }
  /** An order may outlast its dialog. */
  const sayIn = (act, text, failed) => {
    if (act === current) say(text, failed)
  }
  const askToken = () => {
    $('-token').hidden = token !== undefined
    return token === undefined ? $('-token').querySelector('input') : undefined
  }
  const bodyOf = (act) => {
    const body = structuredClone(act.body ?? {})
    for (const input of $('-fields').querySelectorAll('input, select')) {
      const value = input.value.trim()
      if (!value) continue
      const [first, second] = input.name.split('.')
      if (second) body[first] = { ...body[first], [second]: [value] }
      else body[first] = value
    }
    return act.method === 'DELETE' ? undefined : body
  }
  let current
  /** What a preview answers is only said while nothing else was asked since. */
  let asks = 0
  /** Resolves when no button is being pressed: one that moves meanwhile, since text above it came or went, misses its click. */
  let pressed = Promise.resolve()
  /** A press that ends outside of the page, or in a menu of the browser, may never be seen to end. */
  const pressMaxMs = 1_000
  box.addEventListener('pointerdown', () => {
    pressed = new Promise((resolve) => {
      for (const name of ['pointerup', 'pointercancel']) addEventListener(name, () => setTimeout(resolve), { once: true })
      setTimeout(resolve, pressMaxMs)
    })
  })
  const isStillAsked = async (ask) => {
    await pressed
    return ask === asks && current !== undefined
  }
  const open = (act) => {
    current = act
    asks += 1
    $('-title').textContent = act.label
    $('-ask').textContent = act.ask
    say('')
    $('-go').hidden = false
    $('-undo').hidden = true
    $('-close').textContent = words.cancel
    $('-fields').replaceChildren(...(act.fields ?? []).map((field) => {
      const label = document.createElement('label')
      const input = document.createElement(field.options ? 'select' : 'input')
      for (const each of field.options ?? []) input.append(new Option(each.replace(/(\\d+)([dhms])/g, (all, count, unit) => figure(Number(count)) + words.units[unit]), each))
      input.name = field.name
      input.value = field.value
      input.dir = 'auto'
      label.append(field.label, input)
      return label
    }))
    const wanted = askToken()
    box.showModal()
    ;(wanted ?? $('-go')).focus()
    void preview()
  }
  const preview = async () => {
    if (!current.preview || token === undefined) return
    asks += 1
    const ask = asks
    if (!await isStillAsked(ask)) return
    const { match } = bodyOf(current)
    if (!match) return say(words.matchFirst)
    say('…')
    try {
      const text = wordsOf(await call('POST', current.preview, { match }))
      if (await isStillAsked(ask)) say(text)
    } catch (error) {
      if (!await isStillAsked(ask)) return
      say(error.message, true)
      askToken()
    }
  }
  const takeToken = () => {
    const input = $('-token').querySelector('input')
    if (token === undefined && input.value) token = input.value.trim()
    input.value = ''
  }
  const run = async (work) => {
    if (busy) return say(words.atWork, true)
    const act = current
    busy = true
    asks += 1
    takeToken()
    try {
      if (token === undefined) throw new Error(words.tokenFirst)
      say('…')
      await work()
    } catch (error) {
      sayIn(act, error.message + (error.isLost ? ' ' + words.perhapsDone : ''), true)
    } finally {
      busy = false
      const wanted = askToken()
      if (act === current) wanted?.focus()
    }
  }
  $('-fields').addEventListener('change', preview)
  $('-token').addEventListener('change', async () => {
    if (!current.preview || !await isStillAsked(asks)) return
    takeToken()
    askToken()
    void preview()
  })
  $('-close').addEventListener('click', () => box.close())
  box.addEventListener('close', () => {
    // By now another one may be open.
    if (!box.open) current = undefined
    void refresh()
  })
  box.querySelector('form').addEventListener('submit', (event) => {
    event.preventDefault()
    const act = current
    void run(async () => {
      const body = bodyOf(act)
      if (act.preview && !body.match) throw new Error(words.matchFirst)
      const said = await carryOut(act, body)
      if (act !== current) return
      say(wordsOf(said))
      $('-go').hidden = true
      $('-close').textContent = words.close
      $('-close').focus()
      if (!act.undo) return
      $('-undo').hidden = false
      $('-undo').onclick = () => run(async () => {
        const { method, path, body = {}, endsAt } = act.undo
        const left = endsAt ? { for: Math.max(1, Math.ceil((Date.parse(endsAt) - Date.now() - skewMs) / 1000)) + 's' } : {}
        const own = Object.entries(body).map(([name, value]) => [name, value === ':' + name ? said[name] : value])
        const given = { ...Object.fromEntries(own), ...left }
        await call(method, path.replace(':id', said.data?.id), method === 'POST' ? given : undefined).catch((error) => {
          throw error.status === 409 ? new Error(words.changedSince) : error
        })
        if (act !== current) return
        say(words.takenBack)
        $('-undo').hidden = true
      })
    })
  })
`
