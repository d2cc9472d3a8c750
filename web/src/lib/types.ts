/** Short names for what the hub sends; the shapes themselves are generated from its OpenAPI document. */
import type { components } from "./api";

type Schemas = components["schemas"];

export type FleetChange = Schemas["FleetChange"];
export type NodeInventory = Schemas["NodeInventory"];
export type DeviceInventory = Schemas["DeviceInventory"];
export type DeviceBookingView = Schemas["DeviceBookingView"];
export type OwnCommands = Schemas["OwnCommands"];
export type HostFacts = Schemas["HostFacts"];
export type Process = Schemas["Process"];
export type ProcessUse = Schemas["ProcessUse"];
export type Problem = Schemas["Problem"];
export type FleetNotice = Schemas["FleetNotice"];
export type NodeWay = NodeInventory["way"];
export type Totals = Schemas["Totals"];
export type DeviceState = Schemas["DeviceStateColumns"]["state"][number];
export type NodeState = Schemas["HostStateColumns"]["state"][number];

/** All states of a device, in the order in which they are counted and shown. */
export const DEVICE_STATES = [
  "free",
  "busy",
  "held",
  "booked",
  "fault",
  "stale",
  "offline",
  "unknown",
] as const satisfies readonly DeviceState[];

export const NODE_STATES = ["live", "stale", "offline", "never"] as const satisfies readonly NodeState[];
