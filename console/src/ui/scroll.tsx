import type { CSSProperties, ReactNode, Ref } from 'react';

/** Content that scrolls separately from the page: reachable by keyboard, and named for screen readers. */
export function Scroll({
  label,
  className,
  style,
  ref,
  children,
}: {
  label: string;
  className?: string;
  style?: CSSProperties;
  ref?: Ref<HTMLDivElement>;
  children: ReactNode;
}) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be for controls
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <div ref={ref} className={className} style={style} role="group" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}
