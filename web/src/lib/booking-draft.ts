/** A booking that is being made: what the form holds, and how the address names what it begins with. */
import { minuteText } from "./zone";

export interface DeviceRef {
  readonly node_id: string;
  readonly uuid: string;
}

/** Named devices, any that fit, or those on which the viewer has processes. */
export type DraftKind = "devices" | "any" | "running";

/** Everything the form asks for, as it is typed: it survives whatever happens around it. */
export interface Draft {
  readonly kind: DraftKind;
  readonly devices: readonly DeviceRef[];
  readonly count: number;
  readonly model: string;
  readonly isOneNode: boolean;
  readonly start: string;
  readonly end: string;
  readonly title: string;
  readonly comment: string;
  readonly group: string;
  /** Whether it is every week, and how many of them in all; what is being typed there may be none. */
  readonly isWeekly: boolean;
  readonly weeks: number | null;
}

export const EMPTY_DRAFT: Draft = {
  kind: "devices",
  devices: [],
  count: 1,
  model: "",
  isOneNode: false,
  start: "now",
  end: "1d",
  title: "",
  comment: "",
  group: "",
  isWeekly: false,
  weeks: 4,
};

const FEWEST_WEEKS = 2;
const MOST_WEEKS = 52;

/** So many weeks as can be booked in a row. */
export const weeksOf = (weeks: number | null): number =>
  Math.min(MOST_WEEKS, Math.max(FEWEST_WEEKS, Math.round(weeks ?? FEWEST_WEEKS)));

/** What the address asks for. */
export type Wanted =
  /** Look at one, change it, or make another like it. */
  | { readonly to: "show" | "edit" | "copy"; readonly id: number }
  | {
      readonly to: "new";
      readonly nodeId: string | null;
      readonly draft: Partial<Draft>;
      /** The address was cut, or stands for something that only another tab knows. */
      readonly isLost?: true;
    };

const LOST: Wanted = { to: "new", nodeId: null, draft: {}, isLost: true };

const MINUTE = 60;
const SECONDS = /^(\d{1,11})-(\d{1,11})$/;

/** Such as `show.12`, `running`, `any.2.A100`, `node.ID` or `gpus.NODE/UUID,NODE/UUID`, the last ones with `@from-to`. */
export function readWanted(text: string, zone: string, now: number): Wanted {
  const [what = "", span = ""] = text.split("@");
  const [word = "", ...rest] = what.split(".");
  const given = rest.join(".");
  if (word === "show" || word === "edit" || word === "copy")
    return /^\d{1,15}$/.test(given)
      ? { to: word, id: Number(given) }
      : { to: "new", nodeId: null, draft: {} };
  const times = SECONDS.exec(span);
  const [from, to] = [Number(times?.[1]), Number(times?.[2])];
  // Part of what was chosen must never pass for all of it.
  if (word === "kept" || (span !== "" && !(from < to))) return LOST;
  const isNow = from <= now + MINUTE;
  const when = times && {
    start: isNow ? EMPTY_DRAFT.start : minuteText(from, zone),
    // So long from now, unless it was aimed at a time that people would write.
    end: isNow && to % (15 * MINUTE) !== 0 ? lengthText(to - from) : minuteText(to, zone),
  };
  if (word === "running") return { to: "new", nodeId: null, draft: { kind: "running", ...when } };
  if (word === "any") {
    const count = Math.min(1000, Math.max(1, Math.floor(Number(rest[0])) || 1));
    return {
      to: "new",
      nodeId: null,
      draft: { kind: "any", count, model: decode(rest.slice(1).join(".")), ...when },
    };
  }
  if (word === "node") return { to: "new", nodeId: decode(given), draft: { ...when } };
  const devices = word === "gpus" ? given.split(",").flatMap(readDevice) : [];
  return { to: "new", nodeId: null, draft: { ...(devices.length > 0 && { devices }), ...when } };
}

/** The way the address names devices, and when; of too many, see `writeChoice`. */
export function writeDevices(devices: readonly DeviceRef[], from?: number, to?: number): string {
  const named = devices.map(({ node_id, uuid }) => `${encode(node_id)}/${encode(uuid)}`).join(",");
  return `gpus.${named}${from === undefined || to === undefined ? "" : `@${from}-${to}`}`;
}

export const writeAny = (count: number, model: string): string => `any.${count}.${encode(model)}`;

/** As people write it and the hub reads it: "1d 4h". */
export function lengthText(seconds: number): string {
  const minutes = Math.max(1, Math.round(seconds / MINUTE));
  const parts = [
    [Math.floor(minutes / 1440), "d"],
    [Math.floor(minutes / 60) % 24, "h"],
    [minutes % 60, "m"],
  ] as const;
  return parts.flatMap(([count, unit]) => (count > 0 ? [`${count}${unit}`] : [])).join(" ");
}

const encode = (text: string): string => encodeURIComponent(text).replaceAll(".", "%2E");

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function readDevice(text: string): DeviceRef[] {
  const [node_id = "", uuid = ""] = text.split("/").map(decode);
  return node_id && uuid ? [{ node_id, uuid }] : [];
}

/** What is sent to the hub to make it, or to see what it would be. */
export function bookingRequest(draft: Draft, zone: string): Record<string, unknown> {
  const { kind, devices, count, model, isOneNode, start, end, title, comment, group, isWeekly, weeks } =
    draft;
  return {
    ...(kind === "devices" && { devices }),
    ...(kind === "any" && { any: { count, ...(model && { model }), ...(isOneNode && { same_node: true }) } }),
    ...(kind === "running" && { running: true }),
    start: start.trim() || "now",
    end: end.trim(),
    zone,
    title: title.trim(),
    comment: comment.trim(),
    ...(group && { group }),
    ...(isWeekly && { weekly: { times: weeksOf(weeks) } }),
  };
}

/** Only what was changed: a title can be mended while a time cannot be moved any more. */
export function bookingChanges(
  first: Draft,
  draft: Draft,
  zone: string,
  revision: number,
): Record<string, unknown> {
  const before = bookingRequest(first, zone);
  const changed = Object.entries(bookingRequest(draft, zone)).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
  );
  return {
    ...Object.fromEntries(changed),
    ...(draft.group !== first.group && { group: draft.group || null }),
    zone,
    revision,
  };
}
