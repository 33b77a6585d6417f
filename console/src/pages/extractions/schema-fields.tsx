import { CodeField, Field, Switch } from '../../ui/field.tsx';
import { parseObject } from '../../ui/json.ts';

/** What data to extract. `schema` is the text as typed. */
type DataWish = { wanted: boolean; schema: string; instructions: string };

const example = {
  type: 'object',
  properties: {
    title: { type: 'string' },
    dates: { type: 'array', items: { type: 'string' }, description: 'As written in the document' },
  },
  required: ['title'],
  additionalProperties: false,
};

export const noData: DataWish = { wanted: false, schema: JSON.stringify(example, null, 2), instructions: '' };

/** The members of the request. Throws with the position of a mistake in the schema. */
export function dataMembers({ wanted, schema, instructions }: DataWish) {
  if (!wanted) return {};
  return {
    schema: parseObject(schema),
    ...(instructions.trim() === '' ? {} : { instructions: instructions.trim() }),
  };
}

/** What is wrong with the schema that is typed, if it is used. */
export function schemaMistake(wish: DataWish): string | undefined {
  try {
    dataMembers(wish);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Edits the JSON Schema of the data, and the instructions for the model. */
export function SchemaFields({
  value,
  errors,
  onChange,
}: {
  value: DataWish;
  errors: { schema: string | undefined; instructions: string | undefined };
  onChange: (value: DataWish) => void;
}) {
  return (
    <>
      <Switch
        label="Take data from each text"
        checked={value.wanted}
        onChange={(wanted) => onChange({ ...value, wanted })}
      />
      {value.wanted ? (
        <>
          <CodeField
            label="JSON Schema of the data"
            hint={
              <span className={errors.schema === undefined ? undefined : 'wrong'}>
                {errors.schema ?? 'Describe members with description. Require only what every document has.'}
              </span>
            }
            rows={14}
            value={value.schema}
            onChange={(schema) => onChange({ ...value, schema })}
          />
          <Field
            label="Instructions"
            hint="Instructions for the whole document, such as its currency."
            error={errors.instructions}
          >
            {(id, described) => (
              <textarea
                id={id}
                {...described}
                rows={2}
                maxLength={10_000}
                value={value.instructions}
                onChange={(event) => onChange({ ...value, instructions: event.target.value })}
              />
            )}
          </Field>
        </>
      ) : null}
    </>
  );
}
