import { Command } from 'cmdk';
import { useSession } from './session.tsx';
import { Check, Plus } from './ui/icons.ts';
import './ui/picker.css';

type Choice = { id: string | undefined; name: string };

/** The apps, sandboxes and organisations to choose from, in one list that is searched by name. */
export default function PlaceList({ onDone, onNewApp }: { onDone: () => void; onNewApp: () => void }) {
  const { place, apps, sandboxes, orgs, choose } = useSession();
  const group = (heading: string, kind: 'app' | 'sandbox' | 'org', choices: Choice[]) => (
    <Command.Group heading={heading}>
      {withChosen(choices, place[kind]).map(({ id, name }) => (
        <Command.Item
          key={id ?? 'all'}
          value={`${name} ${id ?? ''} ${kind}`}
          onSelect={() => {
            onDone();
            if (kind === 'app') choose({ app: id });
            else if (kind === 'sandbox') choose({ app: place.app, sandbox: id });
            else choose({ ...place, org: id });
          }}
        >
          <span className="cut">{name}</span>
          {id === place[kind] ? (
            <span className="place-chosen">
              <Check size={15} aria-hidden="true" />
              <span className="hidden">chosen</span>
            </span>
          ) : null}
        </Command.Item>
      ))}
    </Command.Group>
  );
  return (
    <Command label="App, sandbox and organisation" loop>
      <Command.Input placeholder="Find an app, sandbox or organisation" />
      <Command.List label="Places">
        <Command.Empty>No matches.</Command.Empty>
        {group('App', 'app', apps)}
        {group('Sandbox', 'sandbox', [{ id: undefined, name: 'Production' }, ...sandboxes])}
        {group('Organisation', 'org', [{ id: undefined, name: 'All organisations' }, ...orgs])}
      </Command.List>
      <div className="place-foot">
        <button type="button" className="button quiet" onClick={onNewApp}>
          <Plus size={15} aria-hidden="true" /> New app
        </button>
      </div>
    </Command>
  );
}

/** With what the address names, if it is not among the first hundred of the list. */
function withChosen(choices: Choice[], chosen: string | undefined): Choice[] {
  if (chosen === undefined || choices.some(({ id }) => id === chosen)) return choices;
  return [{ id: chosen, name: chosen }, ...choices];
}
