// The verdicts of the doctor, corrected by what the stream says at this moment: the doctor is asked seldom.

export interface Check {
  name: string
  verdict: 'ok' | 'warn' | 'bad'
  found: string
  advice: string
}

/** `wrong`: what is known to be bad by now, by the name of its check, in words. */
export const corrected = (checks: readonly Check[], wrong: Readonly<Record<string, string>>): Check[] =>
  checks.map((check) => {
    const said = wrong[check.name]
    if (!said || check.verdict === 'bad') return check
    return { ...check, verdict: 'bad', found: check.verdict === 'ok' ? said : check.found }
  })
