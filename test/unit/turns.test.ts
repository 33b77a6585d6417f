import assert from 'node:assert/strict';
import { RecentApps } from '../../src/fairness/recent-apps.ts';
import { sharedBytesPerSecond, Turns } from '../../src/http/limits/turns.ts';
import { speedTest, startWatch } from '../support/speed.ts';

const pieces = 4;
const pieceMs = 40;

/** Milliseconds until the last of some large pieces of one app has had its turn. */
async function takeTurns(turns: Turns, app: string): Promise<number> {
  const watch = startWatch();
  for (let n = 0; n <= pieces; n++)
    await turns.run(
      app,
      () => {},
      () => (sharedBytesPerSecond * pieceMs) / 1_000,
    );
  return watch.passedMs();
}

speedTest('large pieces of an app are paced only while another app sends requests', async () => {
  const apps = new RecentApps();
  const turns = new Turns(apps);
  apps.note('large');
  // The machine may be busy for as long as a pause would take, but not each time.
  const alone = Math.min(...[await takeTurns(turns, 'large'), await takeTurns(turns, 'large')]);
  apps.note('other');
  apps.note('large');
  const shared = await takeTurns(turns, 'large');
  // Timers may fire a millisecond early.
  assert.ok(shared >= pieces * (pieceMs - 1), `${shared} ms`);
  assert.ok(alone < shared, `${alone} ms alone, ${shared} ms beside another app`);
});
