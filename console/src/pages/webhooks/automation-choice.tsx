import { Link } from 'wouter';
import { call } from '../../api/client.ts';
import { IconButton } from '../../ui/button.tsx';
import { Field } from '../../ui/field.tsx';
import { X } from '../../ui/icons.ts';
import { Picker } from '../../ui/picker.tsx';
import { useApi } from '../../ui/query.ts';

const foundMax = 100;

/** Automations whose runs a program executes. Only those can wake a function. */
async function findPrograms(search: string) {
  const { data } = await call('GET /api/v1/automations', { query: { search, page_size: foundMax } });
  return data
    .filter(({ workflow }) => workflow?.kind === 'WorkflowProgram')
    .map(({ id, name, lookup_key }) => ({ id, name, detail: lookup_key ?? '' }));
}

/** Chooses the automations whose runs a function executes. */
export function AutomationChoice({
  value,
  error,
  onChange,
}: {
  value: string[];
  error: string | undefined;
  onChange: (value: string[]) => void;
}) {
  return (
    <Field label="Automations" hint="Only those whose workflow is a program can be chosen." error={error}>
      {(id) => (
        <>
          {value.length === 0 ? null : (
            <ul className="chosen-automations">
              {value.map((one) => (
                <li key={one}>
                  <AutomationName id={one} />
                  <RemoveButton id={one} onClick={() => onChange(value.filter((other) => other !== one))} />
                </li>
              ))}
            </ul>
          )}
          <Picker
            label="Add an automation"
            id={id}
            text="Add an automation…"
            isChosen={false}
            placeholder="Name"
            idPattern={/^aut_\w{22}$/}
            findKey="programs"
            find={async (search) => (await findPrograms(search)).filter((found) => !value.includes(found.id))}
            onChoose={(chosen) => onChange([...new Set([...value, chosen])])}
          />
        </>
      )}
    </Field>
  );
}

const useName = (id: string) =>
  useApi('GET /api/v1/automations/{automation}', { path: { automation: id } }).data?.name ?? id;

function AutomationName({ id }: { id: string }) {
  return <span className="cut">{useName(id)}</span>;
}

function RemoveButton({ id, onClick }: { id: string; onClick: () => void }) {
  return (
    <IconButton label={`Remove ${useName(id)}`} onClick={onClick}>
      <X size={15} aria-hidden="true" />
    </IconButton>
  );
}

/** The automations that a function executes, each with a link to its page. */
export function AutomationLinks({ ids }: { ids: string[] }) {
  return (
    <span className="names">
      {ids.map((id) => (
        <AutomationLink key={id} id={id} />
      ))}
    </span>
  );
}

function AutomationLink({ id }: { id: string }) {
  return <Link href={`/automations/${id}`}>{useName(id)}</Link>;
}
