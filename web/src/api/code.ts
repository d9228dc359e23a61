// The code of a login link. It is taken out of the address at once, so that neither the history nor a picture of the screen keeps it.
let kept: string | null = null // of a link that was opened where somebody is logged in: if that login is over, it is of use

function ofAddress(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get('code')
  if (code) history.replaceState(null, '', location.pathname + location.search)
  return code
}

/** For whoever is logged in already. */
export function putCodeAside(): void {
  kept = ofAddress() ?? kept
}

/** For whoever logs in with it; it is good for once. */
export function takeCode(): string | null {
  const code = ofAddress() ?? kept
  kept = null
  return code
}
