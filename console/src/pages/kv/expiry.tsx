import { Field } from '../../ui/field.tsx';
import { NumberField } from '../../ui/number-field.tsx';
import { Time } from '../../ui/time.tsx';

/** When an entry expires: never, as before, or some time after it is saved. */
export type Expiry = { kind: 'never' | 'keep' | 'after'; amount: string; unit: Unit };
type Unit = keyof typeof unitSeconds;

const unitSeconds = { seconds: 1, minutes: 60, hours: 3_600, days: 86_400 };

export const noExpiry: Expiry = { kind: 'never', amount: '1', unit: 'hours' };

/** The `ttl_seconds` of a write; a write without it clears the expiry. */
export function ttlOf({ kind, amount, unit }: Expiry, expiresAt: string | undefined): { ttl_seconds?: number } {
  if (kind === 'after') return { ttl_seconds: Number(amount) * unitSeconds[unit] };
  if (kind === 'never' || expiresAt === undefined) return {};
  return { ttl_seconds: Math.max(1, Math.ceil((Date.parse(expiresAt) - Date.now()) / 1_000)) };
}

export function ExpiryField({
  value,
  expiresAt,
  error,
  onChange,
}: {
  value: Expiry;
  /** When the saved entry expires. */
  expiresAt?: string | undefined;
  error: string | undefined;
  onChange: (value: Expiry) => void;
}) {
  const { kind, amount, unit } = value;
  return (
    <div className="row">
      <Field
        label="Expires"
        hint={
          kind === 'keep' ? (
            <>
              The entry expires <Time at={expiresAt} />.
            </>
          ) : (
            'An expired entry no longer exists.'
          )
        }
      >
        {(id, described) => (
          <select
            id={id}
            {...described}
            value={kind}
            onChange={(event) => onChange({ ...value, kind: event.target.value as Expiry['kind'] })}
          >
            {expiresAt === undefined ? null : <option value="keep">Unchanged</option>}
            <option value="never">Never</option>
            <option value="after">After a time</option>
          </select>
        )}
      </Field>
      {kind === 'after' ? (
        <>
          <NumberField
            label="Time to live"
            error={error}
            min={1}
            required
            value={amount}
            onChange={(next) => onChange({ ...value, amount: next })}
          />
          <Field label="Unit">
            {(id) => (
              <select
                id={id}
                value={unit}
                onChange={(event) => onChange({ ...value, unit: event.target.value as Unit })}
              >
                {Object.keys(unitSeconds).map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            )}
          </Field>
        </>
      ) : null}
    </div>
  );
}
