import { useState } from 'react';
import type { ApiError } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';
import { CodeField } from '../../ui/field.tsx';
import { parseJson } from '../../ui/json.ts';
import { ErrorNotice } from '../../ui/notice.tsx';
import { useAction } from '../../ui/query.ts';
import { emptyPayload, readPayload, SchemaFields } from '../knowledge/schema-form.tsx';

type FormSchema = { properties?: Record<string, { type?: string; title?: string }>; required?: string[] };

/**
 * The form of an approval, generated from its JSON Schema. A boolean `ok` becomes two buttons. A schema without
 * properties is answered in JSON.
 */
export function AnswerForm({
  form,
  send,
}: {
  form: Record<string, unknown>;
  send: (data: unknown) => Promise<unknown>;
}) {
  const [values, setValues] = useState(emptyPayload);
  const [text, setText] = useState('');
  const { ok, ...others } = (form as FormSchema).properties ?? {};
  const hasFields = ok !== undefined || Object.keys(others).length > 0;
  const decides = ok?.type === 'boolean';
  const fields = decides ? { ...form, properties: others } : form;
  const answer = useAction(async (decision?: boolean) => {
    const data = hasFields ? readPayload(fields, values) : parseJson(text);
    await send(decides ? { ...(data as object), ok: decision } : data);
  });
  const error: ApiError | undefined = answer.error;
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        const { submitter } = event.nativeEvent as SubmitEvent;
        void answer.run(decides ? submitter?.getAttribute('value') === 'true' : undefined);
      }}
    >
      {hasFields ? (
        <SchemaFields schema={fields} values={values} error={error} of="data" onChange={setValues} />
      ) : (
        <CodeField label="Answer" hint="JSON that matches the form." rows={4} value={text} onChange={setText} />
      )}
      <ErrorNotice error={error} />
      <div className="toolbar">
        {decides ? (
          <>
            <Button type="submit" kind="primary" value="true" busy={answer.busy}>
              {ok.title ?? 'Approve'}
            </Button>
            <Button type="submit" value="false" busy={answer.busy}>
              Refuse
            </Button>
          </>
        ) : (
          <Button type="submit" kind="primary" busy={answer.busy}>
            Answer
          </Button>
        )}
      </div>
    </form>
  );
}
