/** What the charts of a node or device ask the hub for, and what they are compared with. */
import type { DeviceEntry } from "../lib/node";
import type { Span } from "../lib/timeline";
import { DAY } from "../lib/zone";
import type { Question } from "./reading.svelte";

export const PREVIOUS = "previous";
/** Points that a chart has room for. */
const POINTS = 400;
const MOST_DEVICES = 64;
const MOST_SESSIONS = 1000;
const MOST_COMPARED = 7;
const BOOKING_SECONDS = 400 * DAY;
export const DEVICE_METRICS = [
  "utilization_gpu",
  "memory_used_bytes",
  "temperature_celsius",
  "power_watts",
  "clock_sm_hertz",
];
const HOST_METRICS = ["cpu_ratio", "memory_used_bytes"];

export interface Comparison {
  readonly hasPrevious: boolean;
  readonly devices: readonly DeviceEntry[];
  /** What it could be compared with. */
  readonly candidates: readonly DeviceEntry[];
}

/** Read what stands in the address; devices that are not there are left out. */
export function readComparison(text: string, devices: readonly DeviceEntry[], own: string): Comparison {
  const chosen = text.split(",");
  const candidates = devices.filter(({ facts }) => facts.uuid !== own);
  return {
    hasPrevious: chosen.includes(PREVIOUS),
    devices: candidates.filter(({ facts }) => chosen.includes(facts.uuid)).slice(0, MOST_COMPARED),
    candidates: own ? candidates : [],
  };
}

export interface Questions {
  readonly devices: Question;
  /** The same of the first device, one length earlier. */
  readonly previous: Question;
  readonly host: Question;
  readonly sessions: Question;
  /** None where the range is longer than what the hub tells at once. */
  readonly bookings: Question | null;
}

/** All that is asked for a span; `device` is whose page it is, `null` for the node's. */
export function questionsOf(
  { from, to }: Span,
  nodeId: string,
  devices: readonly DeviceEntry[],
  device: string | null,
): Questions {
  const span = { from, to, points: POINTS };
  const named = devices.slice(0, MOST_DEVICES).map(({ facts }) => `${nodeId}:${facts.uuid}`);
  const path = "history/devices";
  const length = to - from;
  return {
    devices: { path, query: { device: named, metric: DEVICE_METRICS, ...span } },
    previous: {
      path,
      query: { device: named.slice(0, 1), metric: DEVICE_METRICS, ...span, from: from - length, to: from },
    },
    host: {
      path: `history/nodes/${encodeURIComponent(nodeId)}`,
      query: { metric: HOST_METRICS, ...span },
    },
    sessions: {
      path: "usage/sessions",
      // Others that are compared with are told of, too: then the whole node is asked for.
      query: { node: nodeId, device: devices.length > 1 ? null : device, from, to, limit: MOST_SESSIONS },
    },
    bookings:
      length <= BOOKING_SECONDS
        ? { path: "timeline", query: { since: Math.floor(from), until: Math.ceil(to), node: nodeId } }
        : null,
  };
}
