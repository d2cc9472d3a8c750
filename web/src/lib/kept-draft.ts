/** What is kept in this tab of a booking that is being made: so that neither a reload nor a login elsewhere loses it. */
import { type DeviceRef, type Draft, EMPTY_DRAFT, writeDevices } from "./booking-draft";
import { LONGEST_BOOK } from "./route.svelte";
import { isZone } from "./zone";

const DRAFT_KEY = "gpuherd.draft";
const CHOICES_KEY = "gpuherd.chosen";
/** Enough for the way back through the history, and far below what a tab may store. */
const MOST_CHOICES = 24;

export interface KeptDraft {
  readonly draft: Draft;
  /** What the form began with: only what differs from it is a change of the viewer's. */
  readonly first: Draft;
  /** Of the booking that is changed, as it was then; `null` for a new one. */
  readonly revision: number | null;
  /** In which zone the times are written. */
  readonly zone: string;
}

interface Stored extends KeptDraft {
  /** Which form it belongs to: what the address said when it was opened. */
  readonly of: string;
}

/** `null` forgets it. */
export function keepDraft(of: string, kept: KeptDraft | null): void {
  write(DRAFT_KEY, kept && ({ ...kept, of } satisfies Stored));
}

export function keptDraft(of: string): KeptDraft | null {
  const stored = read(DRAFT_KEY) as Partial<Stored> | null;
  if (stored?.of !== of || !stored.draft || !stored.first || !isZone(stored.zone ?? "")) return null;
  return {
    draft: { ...EMPTY_DRAFT, ...stored.draft },
    first: { ...EMPTY_DRAFT, ...stored.first },
    revision: stored.revision ?? null,
    zone: stored.zone ?? "",
  };
}

/** Choices that are too long for an address, by the key that stands there instead; the newest last. */
let choices: readonly (readonly [key: string, text: string])[] | null = null;

/** The way the address names devices and when; of too many for an address it only says where in this tab they are. */
export function writeChoice(devices: readonly DeviceRef[], from: number, to: number): string {
  const text = writeDevices(devices, from, to);
  if (text.length <= LONGEST_BOOK) return text;
  choices ??= readChoices();
  const key = `kept.${digest(text)}`;
  if (!choices.some(([known]) => known === key)) {
    choices = [...choices, [key, text] as const].slice(-MOST_CHOICES);
    write(CHOICES_KEY, choices);
  }
  return key;
}

/** What an address stands for: itself, unless it is the key of something that this tab has kept. */
export function readChoice(book: string): string {
  if (!book.startsWith("kept.")) return book;
  choices ??= readChoices();
  return choices.find(([key]) => key === book)?.[1] ?? book;
}

function readChoices(): readonly (readonly [string, string])[] {
  const stored = read(CHOICES_KEY);
  return Array.isArray(stored) ? stored.filter((one): one is [string, string] => Array.isArray(one)) : [];
}

/** The same choice has the same key, however often its address is written (FNV-1a, twice for 64 bits). */
function digest(text: string): string {
  return [0x811c9dc5, 0x01000193]
    .map((seed) => {
      let sum = seed;
      for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 0x01000193);
      return (sum >>> 0).toString(36);
    })
    .join("-");
}

function read(key: string): unknown {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

function write(key: string, value: unknown): void {
  try {
    if (value === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Refused in some private windows: it then lasts as long as the page.
  }
}
