/** The nonce of this page, for style elements that dialogs and editors create. The policy allows no others. */
export const pageNonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.nonce ?? '';

// The scroll lock of Radix's dialogs reads it from here.
Object.assign(globalThis, { __webpack_nonce__: pageNonce });
