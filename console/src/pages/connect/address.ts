/* A sign-in at an issuer of the app leaves the page and comes back to the start page of the console. */
const kept = 'quarry.connect';

/** Whether this is the page on which a user connects an assistant. */
export const isConnectPage = location.pathname === '/console/connect';

/** Keeps the address of this page, in this tab alone, for the return from a sign-in. */
export function keepConnectAddress(): void {
  sessionStorage.setItem(kept, location.search);
}

/** Returns to the page, once, if the sign-in began there. */
export function returnToConnectPage(): boolean {
  const search = sessionStorage.getItem(kept);
  sessionStorage.removeItem(kept);
  if (search === null || isConnectPage || !/^\/console\/?$/.test(location.pathname)) return false;
  location.replace(`/console/connect${search}`);
  return true;
}
