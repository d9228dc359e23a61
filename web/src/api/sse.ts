// Server-sent events from text that arrives in pieces. By fetch, because EventSource cannot carry the key.

export interface Sent {
  event: string
  data: string
  id: string | null
}

/** Cuts what arrived into events; keeps what is not whole yet. Lines may end in \n or \r\n; comments are left out. */
export class Cutter {
  private rest = ''
  private event = ''
  private data: string[] = []
  private id: string | null = null

  push(piece: string): Sent[] {
    const lines = (this.rest + piece).split('\n')
    this.rest = lines.pop() ?? ''
    const sent: Sent[] = []
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw
      if (line === '') {
        if (this.data.length) sent.push({ event: this.event || 'message', data: this.data.join('\n'), id: this.id })
        this.event = ''
        this.data = []
        this.id = null
      } else if (!line.startsWith(':')) this.field(line)
    }
    return sent
  }

  private field(line: string): void {
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'event') this.event = value
    else if (name === 'data') this.data.push(value)
    else if (name === 'id') this.id = value
  }
}
