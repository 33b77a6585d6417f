import { after } from 'node:test';

/*
 * Ends a process of tests that has nothing left to test and does not end: it would keep the whole run from ending. A
 * program imports it last, so that the hooks of its tests have closed what they opened.
 */
const endTimeoutMs = Number(process.env.TEST_END_MS ?? 60_000);

after(() => {
  setTimeout(() => {
    console.error(`The tests have ended, but their process has not. Still open: ${process.getActiveResourcesInfo()}`);
    process.exit(1);
  }, endTimeoutMs).unref();
});
