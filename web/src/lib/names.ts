/** Names in the order in which people count: n2 before n10, whatever their case. */

// Made when first needed: the tables behind it take a browser some milliseconds to read (lib/stream-worker.ts).
let collator: Intl.Collator | null = null;

export function compareNames(a: string, b: string): number {
  collator ??= new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  return collator.compare(a, b);
}
