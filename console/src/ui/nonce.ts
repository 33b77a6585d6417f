/** The nonce of this page, for the style elements that dialogs and editors make: the policy allows no others. */
export const pageNonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.nonce ?? '';

// Where the scroll lock of Radix's dialogs looks for it.
Object.assign(globalThis, { __webpack_nonce__: pageNonce });
