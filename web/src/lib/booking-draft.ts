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
  /** How many weeks in a row; 1 is once. */
  readonly weeks: number;
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
  weeks: 1,
};

/** What the address asks for. */
export type Wanted =
  /** Look at one, change it, or make another like it. */
  | { readonly to: "show" | "edit" | "copy"; readonly id: number }
  | { readonly to: "new"; readonly nodeId: string | null; readonly draft: Partial<Draft> };

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

/** The way the address names devices, and when; whoever has too many for an address keeps them in the draft. */
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
  const { kind, devices, count, model, isOneNode, start, end, title, comment, group, weeks } = draft;
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
    ...(weeks > 1 && { weekly: { times: weeks } }),
  };
}

const KEY = "gpuherd.draft";

interface Kept {
  /** Which form it belongs to: what the address said when it was opened. */
  readonly of: string;
  readonly draft: Draft;
}

/** Keep what was typed, so that neither a reload nor a login elsewhere loses it; `null` forgets it. */
export function keepDraft(of: string, draft: Draft | null): void {
  try {
    if (draft) sessionStorage.setItem(KEY, JSON.stringify({ of, draft } satisfies Kept));
    else sessionStorage.removeItem(KEY);
  } catch {
    // Refused in some private windows: the draft then lasts as long as the form.
  }
}

export function keptDraft(of: string): Draft | null {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Kept | null;
    return kept?.of === of ? { ...EMPTY_DRAFT, ...kept.draft } : null;
  } catch {
    return null;
  }
}
