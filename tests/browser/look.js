// Looked at in the page by test_look.py. Each names what it does not like.

function rgb(text) {
  const parts = text.match(/[\d.]+/g).map(Number)
  const scale = text.startsWith('color(') ? 255 : 1
  return [...parts.slice(0, 3).map((part) => part * scale), parts[3] ?? 1]
}

const over = (top, under) => top.slice(0, 3).map((part, i) => part * top[3] + under[i] * (1 - top[3]))

function lightness(colour) {
  const [r, g, b] = colour.map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4))
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

const shown = (element) => {
  const box = element.getBoundingClientRect()
  return box.width > 0 && box.height > 0 && getComputedStyle(element).visibility === 'visible'
}

/** Texts whose colour stands out too little from all that lies under it. Greyed controls and drawings are not looked at. */
function faint() {
  const found = []
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walk.nextNode()) {
    const at = walk.currentNode.parentElement
    const text = walk.currentNode.data.trim()
    if (!text || !shown(at) || at.closest('svg, .sr, .skip, :disabled, [aria-disabled=true], option')) continue
    const layers = []
    for (let element = at; element; element = element.parentElement) layers.unshift(getComputedStyle(element))
    if (layers.some((layer) => layer.backgroundImage !== 'none')) continue
    const ground = layers.reduce((under, layer) => over(rgb(layer.backgroundColor), under), [255, 255, 255])
    const [a, b] = [lightness(over(rgb(layers.at(-1).color), ground)), lightness(ground)].sort((x, y) => y - x)
    const ratio = (a + 0.05) / (b + 0.05)
    if (ratio < 4.5) found.push(`${text.slice(0, 30)}: ${ratio.toFixed(2)} in .${at.className}`)
  }
  return found
}

/** Where else a press does the same. */
const ELSEWHERE = { '.jobrow:not(.foreign) > .id': '.jobrow', '.group > .count': '.group' }
const FINGER = 44

/** What is pressed and is lower than a finger is wide: of the points on a line down through it, those where a press is its own. A
 * border is its field's. */
function small() {
  const pressed = [...document.querySelectorAll('button, a[href], select, input')]
  const own = (element, hit) => {
    if (!hit) return false
    if (element.contains(hit) || [...(element.labels ?? [])].some((label) => label.contains(hit))) return true
    if (hit.closest('button, a[href], select, input')) return false
    return Object.entries(ELSEWHERE).some(([one, place]) => element.matches(one) && element.closest(place).contains(hit))
  }
  const reach = (element) => {
    element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' })
    const { left, top, bottom, width } = element.getBoundingClientRect()
    const along = (x) => {
      let high = 0
      for (let y = top - FINGER; y < bottom + FINGER; y += 1) high += own(element, document.elementFromPoint(x, y)) ? 1 : 0
      return high
    }
    return Math.max(...[0.25, 0.5, 0.75].map((share) => along(left + width * share)))
  }
  return pressed
    .filter((element) => shown(element) && !element.disabled && !element.closest('.sr, .skip'))
    .map((element) => [element, reach(element)])
    .filter(([, high]) => high < FINGER - 2)
    .map(([element, high]) => `${element.outerHTML.slice(0, 90)}: ${high}`)
}

/** Bars whose content does not fit into them. */
function cut() {
  return [...document.querySelectorAll('header, .bar, .selbar')]
    .filter((element) => shown(element) && element.scrollWidth > element.clientWidth + 1)
    .map((element) => element.outerHTML.slice(0, 200))
}
