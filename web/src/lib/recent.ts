/** The last minutes of one node: what the hub remembers, then what the stream goes on to tell. */
import type { components } from "./api";
import type { Known } from "./columns";

export type RecentView = components["schemas"]["RecentView"];
export type RecentDeviceNumber = keyof components["schemas"]["RecentDevice"];
export type RecentHostNumber = keyof components["schemas"]["RecentHost"];

export const WINDOW_SECONDS = 900;
export const STEP_SECONDS = 5;
/** Two moments further apart than this have a gap between them. */
const GAP_SECONDS = 3 * STEP_SECONDS;

export const HOST = "host";

/** What a line is called: one number of the host or of a device. */
export function lineKey(owner: string, number: RecentDeviceNumber | RecentHostNumber): string {
  return `${owner} ${number}`;
}

/** Moments in time and, for each line, its value at each of them; `null` is unknown and breaks the line. */
export interface Minutes {
  readonly times: readonly number[];
  readonly lines: ReadonlyMap<string, readonly Known[]>;
}

export const NO_MINUTES: Minutes = { times: [], lines: new Map() };

interface Moment {
  readonly time: number;
  readonly values: ReadonlyMap<string, Known>;
}

/**
 * Keeps one moment each few seconds. The newest one is provisional: it moves along with every message until it is far
 * enough from the one before, so that the right end of a line is always now.
 */
export class RecentMinutes {
  #moments: Moment[] = [];

  /** Take what the hub remembers; what came by the stream since then stays. Gaps in the middle are filled, too. */
  load(view: RecentView): void {
    const loaded = view.times.map((time, i): Moment => {
      const values = new Map<string, Known>();
      const note = (owner: string, columns: Record<string, (number | null)[]>): void => {
        for (const [name, column] of Object.entries(columns))
          values.set(`${owner} ${name}`, column[i] ?? null);
      };
      note(HOST, { ...view.host });
      for (const [uuid, columns] of Object.entries(view.devices)) note(uuid, { ...columns });
      return { time, values };
    });
    const last = loaded.at(-1)?.time ?? -Infinity;
    this.#moments = [...loaded, ...this.#moments.filter(({ time }) => time > last)];
  }

  /** Take the present; tells whether moments are missing before it, which the hub may still remember. */
  append(time: number, values: ReadonlyMap<string, Known>): boolean {
    const [before, newest] = this.#moments.slice(-2);
    const last = newest ?? before;
    if (last && time <= last.time) return false;
    const isProvisional = before && newest && newest.time - before.time < STEP_SECONDS;
    if (isProvisional && time - before.time <= GAP_SECONDS) this.#moments.pop();
    this.#moments.push({ time, values });
    while (this.#moments[0] && this.#moments[0].time < time - WINDOW_SECONDS - STEP_SECONDS)
      this.#moments.shift();
    return last !== undefined && time - last.time > GAP_SECONDS;
  }

  /** As columns. Between moments that are far apart stands one of which nothing is known. */
  minutes(keys: readonly string[]): Minutes {
    const times: number[] = [];
    const lines = new Map<string, Known[]>(keys.map((key) => [key, []]));
    const add = (time: number, values: ReadonlyMap<string, Known> | null): void => {
      times.push(time);
      for (const [key, line] of lines) line.push(values?.get(key) ?? null);
    };
    for (const { time, values } of this.#moments) {
      const last = times.at(-1);
      if (last !== undefined && time - last > GAP_SECONDS) add(last + STEP_SECONDS, null);
      add(time, values);
    }
    return { times, lines };
  }
}
