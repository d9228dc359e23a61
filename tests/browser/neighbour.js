// What a neighbour's page tries against a console that is open in the same browser. Each try says what it got: "nothing" or it.
const target = new URLSearchParams(location.search).get('target')
const NOTHING = 'nothing'
const WITHIN = 5000

const within = (promise) => Promise.race([promise, new Promise((done) => setTimeout(() => done(NOTHING), WITHIN))])
const tried = async (act) => {
  try {
    return await within(act())
  } catch (error) {
    return NOTHING
  }
}
const read = async (answer) => (answer.type === 'opaque' ? NOTHING : `${answer.status} ${(await answer.text()).slice(0, 200)}`)
const element = (name, set) =>
  new Promise((done) => {
    const made = document.createElement(name)
    made.onload = () => done(made)
    made.onerror = () => done(null)
    Object.assign(made, set)
    document.body.append(made)
  })
const posted = (path, enctype, name, value, where) => {
  const form = document.createElement('form')
  Object.assign(form, { method: 'POST', action: target + path, enctype, target: where })
  form.append(Object.assign(document.createElement('input'), { name, value }))
  document.body.append(form)
  form.submit()
}
const JOB = JSON.stringify({ run: 'touch /tmp/owned', workdir: '/' })
const with_cookie = { credentials: 'include' }

export const tries = {
  'fetch, to read': (path) => tried(async () => read(await fetch(target + path, with_cookie))),
  'fetch, blindly': (path) => tried(async () => read(await fetch(target + path, { ...with_cookie, mode: 'no-cors' }))),
  'fetch, with a key of his own': (path) =>
    tried(async () => read(await fetch(target + path, { ...with_cookie, headers: { 'X-Jostle-Key': 'x' } }))),
  'a submit as JSON': () =>
    tried(async () =>
      read(
        await fetch(`${target}/api/v1/add`, {
          ...with_cookie,
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body: JOB,
        }),
      ),
    ),
  'a submit as text': () =>
    tried(async () => read(await fetch(`${target}/api/v1/add`, { ...with_cookie, mode: 'no-cors', method: 'POST', body: JOB }))),
  'a beacon': () => tried(async () => (navigator.sendBeacon(`${target}/api/v1/add`, new Blob([JOB])), NOTHING)),
  'a form in a frame': () =>
    tried(async () => {
      const frame = document.createElement('iframe')
      frame.name = 'sink'
      document.body.append(frame)
      for (const [path, kind] of [
        ['/api/v1/add', 'text/plain'],
        ['/api/auth/logout', 'application/x-www-form-urlencoded'],
        ['/api/v1/cancel', 'multipart/form-data'],
      ]) {
        const loaded = new Promise((done) => (frame.onload = done))
        posted(path, kind, `{"run":"touch /tmp/owned","workdir":"/","x":"`, '"}', 'sink')
        await within(loaded)
      }
      return frame.contentDocument ? frame.contentDocument.body.innerText || NOTHING : NOTHING
    }),
  'a frame around the page': () =>
    tried(async () => {
      const frame = await element('iframe', { src: `${target}/ui/gpu` })
      return frame?.contentDocument?.body?.innerText || (frame && frame.contentWindow.length > 0 ? 'a page' : NOTHING)
    }),
  'a script of an answer': (path) => tried(async () => ((await element('script', { src: target + path })) ? 'it ran' : NOTHING)),
  'a picture of an answer': (path) => tried(async () => ((await element('img', { src: target + path })) ? 'seen' : NOTHING)),
  'a style of the page': (path) =>
    tried(async () => {
      const link = await element('link', { rel: 'stylesheet', href: target + path })
      return link?.sheet ? `${link.sheet.cssRules.length} rules` : NOTHING
    }),
  'an event source': () =>
    tried(
      () =>
        new Promise((done) => {
          const source = new EventSource(`${target}/api/v1/stream?gpus=1`, { withCredentials: true })
          for (const kind of ['hello', 'event', 'gpus', 'engine', 'message'])
            source.addEventListener(kind, (message) => done(message.data))
          source.onerror = () => (source.close(), done(NOTHING))
        }),
    ),
  'a websocket': () =>
    tried(
      () =>
        new Promise((done) => {
          const socket = new WebSocket(`${target.replace('http', 'ws')}/api/v1/stream`)
          socket.onopen = () => done('open')
          socket.onmessage = (message) => done(message.data)
          socket.onerror = () => done(NOTHING)
        }),
    ),
  'a window, and messages to it': () =>
    tried(async () => {
      const heard = []
      window.addEventListener('message', (message) => message.source !== window && heard.push(JSON.stringify(message.data)))
      const other = window.open(`${target}/ui/gpu`, 'console')
      if (!other) return 'no window: this has tried nothing'
      for (let n = 0; n < 20 && !heard.length; n += 1) {
        for (const message of [{ ask: true }, { held: { key: 'x', rights: 'all' } }, { logout: true }, 'key'])
          if (!other.closed) other.postMessage(message, '*')
        await new Promise((done) => setTimeout(done, 50))
      }
      let inside = NOTHING
      try {
        inside = other.sessionStorage.getItem('jostle.key') || other.document.body.innerText || NOTHING
      } catch {
        // another origin
      }
      return heard[0] ?? inside
    }),
  'the channel of the page': () =>
    tried(
      () =>
        new Promise((done) => {
          const channel = new BroadcastChannel('jostle.session')
          channel.onmessage = (message) => done(JSON.stringify(message.data))
          channel.postMessage({ ask: true })
          setTimeout(() => done(NOTHING), 1000)
        }),
    ),
  'what is kept in the browser': () =>
    tried(async () => {
      const kept = { ...sessionStorage, ...localStorage }
      const databases = (await indexedDB.databases?.()) ?? []
      return Object.keys(kept).length + databases.length || document.cookie ? JSON.stringify([kept, document.cookie]) : NOTHING
    }),
  'a worker for the whole host': () =>
    tried(async () => {
      await navigator.serviceWorker.register(`${target}/ui/assets/x.js`)
      return 'registered'
    }),
}
window.tries = tries
