import { closeQuestion, useQuestion } from './ask.ts';
import { Confirm } from './dialog.tsx';

/** Shows the question that code outside of components asks. */
export function Questions() {
  const question = useQuestion();
  if (question === undefined) return null;
  const { title, text, action, proceed } = question;
  return (
    <Confirm
      title={title}
      action={action}
      busy={false}
      error={undefined}
      onClose={closeQuestion}
      onConfirm={() => {
        closeQuestion();
        proceed();
      }}
    >
      {text}
    </Confirm>
  );
}
