/** Who was on a device, and when: stays as the hub tells them, looked up by moment and laid out as bands. */
import type { UsageSessions } from "./history-types";
import type { Span } from "./timeline";

export interface Stay extends Span {
  /** `null` is unknown. */
  readonly user: string | null;
}

/** The stays on each device, by start. */
export interface Stays {
  readonly byDevice: ReadonlyMap<string, readonly Stay[]>;
  /** Since when all are told; before that there may have been others. */
  readonly knownFrom: number;
}

/** One that goes on lasts until `now`. */
export function readStays({ sessions, is_complete }: UsageSessions, now: number): Stays {
  const found = new Map<string, Stay[]>();
  for (const { uuid, user, started_at: from, ended_at } of sessions) {
    const stay = { user, from, to: ended_at ?? Math.max(now, from) };
    const others = found.get(uuid);
    if (others) others.push(stay);
    else found.set(uuid, [stay]);
  }
  for (const stays of found.values()) stays.sort((a, b) => a.from - b.from || a.to - b.to);
  // Those last seen latest are told first: whoever was left out was seen before all of these.
  const knownFrom = is_complete ? -Infinity : Math.min(...sessions.map(({ last_seen_at }) => last_seen_at));
  return { byDevice: found, knownFrom };
}

/** Everyone who was on a device at some time of a span; `null` if it is not known whether anyone was. */
export function usersOn({ byDevice, knownFrom }: Stays, uuid: string, span: Span): (string | null)[] | null {
  const users = usersWithin(byDevice.get(uuid) ?? [], span);
  return users.length > 0 || span.from >= knownFrom ? users : null;
}

/** Everyone who was there at some time of a span, each once, those who came first before others. */
export function usersWithin(stays: readonly Stay[], { from, to }: Span): (string | null)[] {
  const found = new Set<string | null>();
  for (const stay of stays) {
    if (stay.from >= to) break;
    if (stay.to > from || (stay.to === stay.from && stay.from >= from)) found.add(stay.user);
  }
  return [...found];
}

export interface UserLane {
  readonly user: string | null;
  readonly seconds: number;
  readonly spans: readonly Span[];
}

/** One lane for each user of a device, those who stayed longest first; what is closer together than `least` is one. */
export function lanesOf(stays: readonly Stay[], seen: Span, least: number): UserLane[] {
  const byUser = new Map<string | null, Span[]>();
  for (const { user, from, to } of stays) {
    if (to < seen.from || from >= seen.to) continue;
    const span = { from: Math.max(from, seen.from), to: Math.min(to, seen.to) };
    const spans = byUser.get(user);
    if (spans) spans.push(span);
    else byUser.set(user, [span]);
  }
  return [...byUser]
    .map(([user, spans]) => {
      const exact = merged(spans, 0);
      return {
        user,
        seconds: exact.reduce((sum, { from, to }) => sum + to - from, 0),
        spans: merged(exact, least),
      };
    })
    .sort((a, b) => b.seconds - a.seconds || (a.user ?? "").localeCompare(b.user ?? ""));
}

/** Spans by start, those that touch or are closer than `least` as one. */
export function merged(spans: readonly Span[], least: number): Span[] {
  const result: { from: number; to: number }[] = [];
  for (const { from, to } of spans) {
    const last = result.at(-1);
    if (last && from - last.to <= least) last.to = Math.max(last.to, to);
    else result.push({ from, to });
  }
  return result;
}
