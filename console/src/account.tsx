import * as Popover from '@radix-ui/react-popover';
import './account.css';
import { useSession } from './session.tsx';
import { Field } from './ui/field.tsx';
import { ChevronsUpDown } from './ui/icons.ts';
import { type Theme, useTheme } from './ui/theme.ts';

/** Who is signed in; with the appearance, the documentation and the way out. */
export function Account() {
  const { session, signOut } = useSession();
  const [theme, setTheme] = useTheme();
  const name = session.user?.email ?? session.developer?.name ?? '';
  return (
    <Popover.Root>
      <Popover.Trigger asChild>
        <button type="button" className="account-button">
          <span className="account-mark" aria-hidden="true">
            {name.slice(0, 1).toUpperCase()}
          </span>
          <span className="hidden">Account:</span>
          <span className="cut grow">{name}</span>
          <ChevronsUpDown size={15} aria-hidden="true" />
        </button>
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content className="account-popover" side="top" align="start" sideOffset={6} aria-label="Account">
          <Field label="Appearance">
            {(id) => (
              <select id={id} value={theme} onChange={(event) => setTheme(event.target.value as Theme)}>
                <option value="auto">System</option>
                <option value="light">Light</option>
                <option value="dark">Dark</option>
              </select>
            )}
          </Field>
          <hr />
          <a href="/docs">Documentation</a>
          <a href="/docs/api">API reference</a>
          <hr />
          <button type="button" className="menu-item" onClick={() => signOut()}>
            Sign out
          </button>
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
