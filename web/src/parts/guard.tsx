import i18next from 'i18next'
import { Component, type ReactNode } from 'react'

/** What fails inside is said in its place; the rest of the page goes on. */
export class Guard extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null }

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error }
  }

  override render(): ReactNode {
    if (!this.state.error) return this.props.children
    return (
      <section className="panel note" role="alert">
        <p className="strong">{i18next.t('error.crash')}</p>
        <p className="mono">{this.state.error.message}</p>
        <p>
          <button type="button" className="btn" onClick={() => location.reload()}>
            {i18next.t('error.again')}
          </button>
        </p>
      </section>
    )
  }
}
