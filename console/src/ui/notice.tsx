import { type ApiError, isPartOf } from '../api/client.ts';
import { Button } from './button.tsx';
import './notice.css';

/** An error, with advice. Each wrong field is named once. */
export function ErrorNotice({
  error,
  shownFields = [],
  onRetry,
}: {
  error: ApiError | undefined;
  /** Fields whose message is shown next to their control. */
  shownFields?: string[];
  onRetry?: (() => void) | undefined;
}) {
  if (!error) return null;
  const fields = error.fields.filter(({ field }) => !shownFields.some((name) => isPartOf(field, name)));
  // The message of an invalid request only repeats its fields.
  const message = error.fields.length > 0 && error.status === 422 ? '' : error.message;
  if (message === '' && fields.length === 0)
    return (
      <p className="hidden" role="alert">
        {titleOf(error)}
      </p>
    );
  return (
    <div className="notice error" role="alert">
      <p>
        <strong>{titleOf(error)}</strong> {message}
      </p>
      {fields.length > 0 ? (
        <ul>
          {fields.map(({ field, message: wrong }) => (
            <li key={`${field} ${wrong}`}>
              <code>{field}</code> {wrong}
            </li>
          ))}
        </ul>
      ) : null}
      {error.requestId !== undefined && error.status >= 500 ? (
        <p className="faint">
          Request id: <code>{error.requestId}</code>
        </p>
      ) : null}
      {onRetry ? (
        <Button kind="plain" onClick={onRetry}>
          Try again
        </Button>
      ) : null}
    </div>
  );
}

/** An error on one line. */
export function errorText({ status, fields, message }: ApiError): string {
  if (fields.length === 0 || status !== 422) return message;
  return fields.map(({ field, message: wrong }) => `${field} ${wrong}`).join('; ');
}

function titleOf({ status, code }: ApiError): string {
  if (code === 'rate_limited') return 'Too many requests.';
  if (code === 'quota_exceeded') return 'The limit was reached.';
  if (status === 0) return 'The request failed.';
  if (status === 403) return 'Not allowed.';
  if (status === 404) return 'Not found.';
  if (status === 422) return 'Please correct this.';
  if (status >= 500) return 'The server reported an error.';
  return 'The request failed.';
}
