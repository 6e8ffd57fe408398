import { Menu as Base } from '@base-ui/react/menu'
import type { ReactNode } from 'react'
import { Icon, type IconName } from './icons.tsx'

export interface MenuItem {
  label: string
  onSelect: () => void
  icon?: IconName
  isDangerous?: boolean
}

interface MenuProps {
  /** The name of the button. */
  label: string
  /** What the button shows; three dots by default. */
  trigger?: ReactNode
  triggerClass?: string
  /** Groups of items, divided by lines. */
  groups: readonly (readonly MenuItem[])[]
}

/** A button with a menu of actions. */
export function Menu({ label, trigger, triggerClass = 'button ghost icon-only', groups }: MenuProps) {
  return (
    <Base.Root modal={false}>
      <Base.Trigger className={triggerClass} aria-label={label} title={trigger ? undefined : label}>
        {trigger ?? <Icon name="more" />}
      </Base.Trigger>
      <Base.Portal>
        <Base.Positioner className="menu-positioner" sideOffset={4} align="end">
          <Base.Popup className="menu">
            {groups
              .filter((items) => items.length > 0)
              .map((items) => (
                <Base.Group key={items[0]?.label} className="menu-group">
                  {items.map((item) => (
                    <Base.Item
                      key={item.label}
                      className={`menu-item ${item.isDangerous ? 'danger' : ''}`}
                      onClick={item.onSelect}
                    >
                      {item.icon ? <Icon name={item.icon} /> : null}
                      {item.label}
                    </Base.Item>
                  ))}
                </Base.Group>
              ))}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}
