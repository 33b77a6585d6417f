import { Shares } from '../../fairness/shares.ts';
import { Slots } from '../../fairness/slots.ts';
import { FetchError } from './errors.ts';

export type RequestLimits = {
  /** The maximum number of concurrent requests in this process. */
  requestsMax: number;
  /** The shares of one app, of one host, and of one app at one host. */
  ofAppMax: number;
  ofHostMax: number;
  ofAppAtHostMax: number;
};

/**
 * Takes turns for requests to other hosts: an unresponsive host uses up only the share of the apps that request it,
 * and delays no other app and no other host. A turn goes to the app with the fewest open requests.
 */
export class RequestQueue {
  readonly #bounds: RequestLimits;
  /** A lane for each app at each host. */
  readonly #slots: Slots;
  readonly #ofApp = new Shares(Number.POSITIVE_INFINITY);
  readonly #ofHost = new Shares(Number.POSITIVE_INFINITY);
  readonly #ofLane = new Shares(Number.POSITIVE_INFINITY);

  constructor(bounds: RequestLimits) {
    this.#bounds = bounds;
    this.#slots = new Slots({
      slots: Number.POSITIVE_INFINITY,
      rule: {
        mayTake: (lane) => this.#mayOpen(lane),
        heldBeside: (lane) => this.#ofApp.of(partsOf(lane).app) - this.#ofLane.of(lane),
      },
      onHold: (lane, by) => this.#count(lane, by),
    });
  }

  /** Waits for a turn. Returns a function that ends the turn. Throws FetchError `aborted`. */
  async take(app: string, host: string, signal: AbortSignal): Promise<() => void> {
    let end: (() => void) | undefined = await this.#slots.take(`${app} ${host}`, signal).catch(() => {
      throw new FetchError('aborted', 'The request was aborted.');
    });
    return () => {
      end?.();
      end = undefined;
    };
  }

  #mayOpen(lane: string): boolean {
    const { requestsMax, ofAppMax, ofHostMax, ofAppAtHostMax } = this.#bounds;
    const { app, host } = partsOf(lane);
    return (
      this.#ofLane.held < requestsMax &&
      this.#ofLane.of(lane) < ofAppAtHostMax &&
      this.#ofApp.of(app) < ofAppMax &&
      this.#ofHost.of(host) < ofHostMax
    );
  }

  #count(lane: string, by: 1 | -1): void {
    const { app, host } = partsOf(lane);
    this.#ofLane.add(lane, by);
    this.#ofApp.add(app, by);
    this.#ofHost.add(host, by);
  }
}

/** Neither part contains a space. */
function partsOf(lane: string): { app: string; host: string } {
  const at = lane.lastIndexOf(' ');
  return { app: lane.slice(0, at), host: lane.slice(at + 1) };
}
