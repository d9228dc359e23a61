// The pages: where each is, its name and icon, and the letter that goes to it after `g`.
import type { IconName } from './parts/icons'

export const PAGES = [
  ['/gpu', 'gpu', 'gpu', 'g'],
  ['/command', 'tasks', 'tasks', 'c'],
  ['/state', 'state', 'state', 's'],
  ['/experiment', 'experiments', 'experiments', 'e'],
  ['/hold', 'hold', 'lock', 'h'],
  ['/rule', 'rules', 'rules', 'r'],
  ['/setting', 'settings', 'settings', 't'],
] as const satisfies readonly (readonly [path: string, name: string, icon: IconName, letter: string])[]
