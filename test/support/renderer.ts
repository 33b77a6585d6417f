import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { requireProgram } from '../../scripts/setup.ts';
import { webRtcFlag } from '../../src/content/browser/renderer.ts';

/**
 * The pages of Chromium's own address bar, which it loads for each window, and the process that it keeps ready: a third of
 * its processor time.
 */
export const unusedFeatures = [
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'WebUIOmniboxFullPopup',
  'SpareRendererForSitePerProcess',
];

export type TestChromium = { address: string; close(): Promise<void> };

/** Starts Chromium as an operator starts it for QUARRY_RENDERER. */
export async function startChromium(flags: string[] = [webRtcFlag]): Promise<TestChromium> {
  const program = requireProgram('browser');
  const profile = await mkdtemp(join(tmpdir(), 'quarry-renderer-'));
  const chromium = spawn(
    program,
    [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'],
      ...[
        '--disable-component-update',
        '--disable-sync',
        '--no-startup-window',
        '--remote-debugging-port=0',
        `--user-data-dir=${profile}`,
        `--disable-features=${unusedFeatures.join()}`,
      ],
      ...flags,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const port = await debuggingPort(chromium);
  return {
    address: `http://127.0.0.1:${port}`,
    async close() {
      const ended = once(chromium, 'exit');
      if (chromium.exitCode === null && chromium.kill()) await ended;
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function debuggingPort({ stderr }: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = '';
    stderr?.on('data', (chunk: Buffer) => {
      if (output.length < 100_000) output += chunk.toString();
      const [, port] = /DevTools listening on ws:\/\/127\.0\.0\.1:(\d+)/.exec(output) ?? [];
      if (port !== undefined) resolve(port);
    });
    stderr?.once('end', () => reject(new Error(`Chromium did not start: ${output.slice(0, 2_000)}`)));
  });
}
