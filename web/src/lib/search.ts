/**
 * What is typed into the search box, and what the chips write there: one text is the whole filter, so that it can be
 * sent to a colleague. Terms are separated by blanks and must all hold; commas inside a term mean "or", a leading
 * minus means "not", quotes keep blanks together. What makes no sense is told and left out, never a reason to show
 * nothing.
 */
import type { DeviceState } from "./types";

export type Comparison = ">" | ">=" | "<" | "<=" | "=";
export type Quantity = "mem" | "used" | "left" | "util" | "idle" | "for" | "temp" | "power" | "free";
export type NameField = "user" | "host" | "type";

/** Names in quotes are meant to the letter; others may use `*`, and a GPU type may be a part of the name. */
export interface SearchName {
  readonly text: string;
  readonly isExact: boolean;
}

type Meaning =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "state"; readonly states: readonly DeviceState[] }
  /** Devices of a node as people write them: `gpu01/3`, `gpu01/3.1`, `gpu01/0-3,6`; a range as its two ends. */
  | {
      readonly kind: "place";
      readonly node: string;
      readonly parts: readonly (string | readonly [number, number])[];
    }
  | { readonly kind: "name"; readonly field: NameField; readonly names: readonly SearchName[] }
  | {
      readonly kind: "quantity";
      readonly quantity: Quantity;
      readonly comparison: Comparison;
      /** In bytes, seconds, ratios 0–1, °C, watts or as a count. */
      readonly value: number;
    }
  /** Of the viewer; a slice of a GPU; something is wrong with it or its node. */
  | { readonly kind: "mine" | "slice" | "trouble" };

export type Term = Meaning & { readonly isNegated: boolean; readonly source: string };

/** Why a term was not understood; `strings.search` has the words. */
export type ComplaintReason = "size" | "time" | "percent" | "number" | "field" | "name";
export interface Complaint {
  readonly source: string;
  readonly reason: ComplaintReason;
}

export interface Query {
  readonly terms: readonly Term[];
  readonly complaints: readonly Complaint[];
}

const TOKEN = /-?(?:[^\s"]|"[^"]*(?:"|$))+/g;
const QUANTITY = /^([a-z]+)(>=|<=|≥|≤|>|<|=)(.*)$/is;
/** No UUID is one, though those of some slices have slashes in them. */
const PLACE = /^(?!(?:gpu|mig)-[\da-f]{8}|mig-gpu-)([^/]+)\/((?:\d+(?:[.-]\d+)?)(?:,\d+(?:[.-]\d+)?)*)$/;
const FIELD = /^([a-z]+):(.*)$/is;

const STATE_WORDS: Readonly<Record<string, readonly DeviceState[]>> = {
  free: ["free"],
  available: ["free"],
  busy: ["busy"],
  used: ["busy", "held"],
  held: ["held"],
  idle: ["held"],
  booked: ["booked"],
  reserved: ["booked"],
  fault: ["fault"],
  faulty: ["fault"],
  broken: ["fault"],
  error: ["fault"],
  stale: ["stale"],
  offline: ["offline"],
  down: ["offline", "stale"],
  unknown: ["unknown"],
};
const SINGLE_WORDS: Readonly<Record<string, "mine" | "slice" | "trouble">> = {
  mine: "mine",
  slice: "slice",
  slices: "slice",
  mig: "slice",
  trouble: "trouble",
  faults: "trouble",
  problems: "trouble",
};
const FIELDS: Readonly<Record<string, NameField | "state">> = {
  user: "user",
  by: "user",
  host: "host",
  node: "host",
  type: "type",
  gpu: "type",
  model: "type",
  state: "state",
  is: "state",
};
const QUANTITIES: Readonly<Record<string, Quantity>> = {
  mem: "mem",
  memory: "mem",
  vram: "mem",
  used: "used",
  left: "left",
  util: "util",
  idle: "idle",
  for: "for",
  temp: "temp",
  power: "power",
  free: "free",
};
const COMPARISONS: Readonly<Record<string, Comparison>> = {
  ">": ">",
  "<": "<",
  "=": "=",
  ">=": ">=",
  "<=": "<=",
  "≥": ">=",
  "≤": "<=",
};
const SIZE = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i;
const SIZE_UNITS: Readonly<Record<string, number>> = { k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };
const TIME = /^(\d+(?:\.\d+)?)\s*(s|m|min|h|d|w)?$/i;
const TIME_UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, min: 60, h: 3600, d: 86400, w: 604800 };
const PERCENT = /^(\d+(?:\.\d+)?)\s*%?$/;
const NUMBER = /^(\d+(?:\.\d+)?)\s*(?:°?c|w)?$/i;

export function parseQuery(text: string): Query {
  const terms: Term[] = [];
  const complaints: Complaint[] = [];
  for (const source of text.match(TOKEN) ?? []) {
    const isNegated = source.length > 1 && source.startsWith("-");
    const read = readTerm(isNegated ? source.slice(1) : source);
    if (typeof read === "string") complaints.push({ source, reason: read });
    else if (read) terms.push({ ...read, isNegated, source });
  }
  return { terms, complaints };
}

/** Take out the terms that `isReplaced` and put `token` at the end, if there is one. All else stays as typed. */
export function replaceTerms(
  text: string,
  isReplaced: (term: Term) => boolean,
  token: string | null = null,
): string {
  const gone = new Set(
    parseQuery(text)
      .terms.filter(isReplaced)
      .map((term) => term.source),
  );
  const kept = (text.match(TOKEN) ?? []).filter((source) => !gone.has(source));
  return [...kept, ...(token ? [token] : [])].join(" ");
}

/** A name as a term that means just it, such as `user:anna` or `type:"A100 80GB"`. */
export function nameTerm(field: NameField, ...names: readonly string[]): string {
  return `${field}:${names.map((name) => `"${name.replaceAll('"', "")}"`).join(",")}`;
}

/** One term's meaning, a complaint, or `null` for what means nothing (yet), such as an opening quote. */
function readTerm(body: string): Meaning | ComplaintReason | null {
  if (body.startsWith('"')) {
    const text = unquote(body);
    return text ? { kind: "text", text: text.toLowerCase() } : null;
  }
  const quantity = QUANTITY.exec(body);
  if (quantity) return readQuantity(quantity[1] ?? "", quantity[2] ?? "", quantity[3] ?? "");
  const field = FIELD.exec(body);
  if (field) return readField(field[1] ?? "", field[2] ?? "");
  const lower = body.toLowerCase();
  const states = readStates(lower);
  if (states) return { kind: "state", states };
  const single = own(SINGLE_WORDS, lower);
  if (single) return { kind: single };
  const place = PLACE.exec(lower);
  if (place) return { kind: "place", node: place[1] ?? "", parts: readParts(place[2] ?? "") };
  const text = unquote(lower);
  return text ? { kind: "text", text } : null;
}

function readParts(text: string): (string | readonly [number, number])[] {
  return text.split(",").map((part) => {
    const [first = "", last] = part.split("-");
    return last === undefined ? first : ([Number(first), Number(last)] as const);
  });
}

function readQuantity(name: string, sign: string, value: string): Meaning | ComplaintReason {
  const quantity = own(QUANTITIES, name.toLowerCase());
  const comparison = own(COMPARISONS, sign);
  if (!quantity || !comparison) return "field";
  const read = readValue(quantity, value.trim());
  return typeof read === "string" ? read : { kind: "quantity", quantity, comparison, value: read };
}

function readValue(quantity: Quantity, text: string): number | ComplaintReason {
  if (quantity === "mem" || quantity === "used" || quantity === "left") {
    const found = SIZE.exec(text);
    return found ? Number(found[1]) * (SIZE_UNITS[(found[2] || "g").toLowerCase()] ?? 1) : "size";
  }
  if (quantity === "idle" || quantity === "for") {
    const found = TIME.exec(text);
    return found ? Number(found[1]) * (TIME_UNITS[(found[2] ?? "m").toLowerCase()] ?? 60) : "time";
  }
  if (quantity === "util") {
    const found = PERCENT.exec(text);
    return found ? Number(found[1]) / 100 : "percent";
  }
  const found = NUMBER.exec(text);
  return found ? Number(found[1]) : "number";
}

function readField(name: string, value: string): Meaning | ComplaintReason {
  const field = own(FIELDS, name.toLowerCase());
  if (!field) return "field";
  if (field === "state") {
    const states = readStates(unquote(value).toLowerCase());
    return states ? { kind: "state", states } : "name";
  }
  const names = (value.match(/(?:"[^"]*(?:"|$)|[^,"])+/g) ?? [])
    .map((part) => ({ text: unquote(part).toLowerCase(), isExact: part.startsWith('"') }))
    .filter((part) => part.text !== "");
  return names.length > 0 ? { kind: "name", field, names } : "name";
}

function readStates(words: string): DeviceState[] | null {
  const lists = words.split(",").map((word) => own(STATE_WORDS, word));
  if (lists.some((list) => list === undefined)) return null;
  return [...new Set(lists.flatMap((list) => list ?? []))];
}

const unquote = (text: string): string => text.replaceAll('"', "");

/** What a table itself has under a key: `constructor` and its like are words as any other. */
function own<Value>(table: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}
