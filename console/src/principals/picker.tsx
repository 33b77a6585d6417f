import { IconButton } from '../ui/button.tsx';
import { X } from '../ui/icons.ts';
import { Picker } from '../ui/picker.tsx';
import { findPrincipals, type PrincipalKind, usePrincipal } from './principals.ts';

/** Chooses a user, agent, team or org by name or e-mail; an id can be pasted. */
export function PrincipalPicker({
  label,
  id,
  kinds,
  value,
  any,
  onChange,
}: {
  label: string;
  /** The id of the control, for the label of a field. */
  id?: string;
  kinds: PrincipalKind[];
  value: string;
  /** The text for no choice. */
  any: string;
  onChange: (value: string) => void;
}) {
  const { data: chosen } = usePrincipal(value === '' ? undefined : value);
  return (
    <div className="picker-control">
      <Picker
        label={label}
        {...(id === undefined ? {} : { id })}
        text={chosen?.name ?? (value || any)}
        isChosen={value !== ''}
        placeholder="Name, e-mail or id"
        idPattern={/^[a-z]{3}_\w{22}$/}
        findKey={`principals ${kinds.join()}`}
        find={async (search) =>
          (await findPrincipals(kinds, search)).map((one) => ({
            ...one,
            detail: one.detail ?? (kinds.length > 1 ? one.kind : ''),
          }))
        }
        onChoose={onChange}
      />
      {value === '' ? null : (
        <IconButton label={`Clear: ${label}`} onClick={() => onChange('')}>
          <X size={15} aria-hidden="true" />
        </IconButton>
      )}
    </div>
  );
}
