/** Numbers by row in typed arrays: what changes every second lives here, outside of the framework. */

/** A value the hub does not know is NaN inside and `null` to everyone who asks. */
export type Known = number | null;

const FIRST_CAPACITY = 64;

export class NumberColumns<Name extends string> {
  readonly #columns: Map<Name, Float64Array>;
  #capacity = 0;

  constructor(readonly names: readonly Name[]) {
    this.#columns = new Map(names.map((name) => [name, new Float64Array(0)]));
  }

  get(name: Name, row: number): Known {
    const value = this.#columns.get(name)?.[row];
    return value === undefined || Number.isNaN(value) ? null : value;
  }

  /** Write position i of every list to row `rows[i]`. */
  write(rows: readonly number[], values: Readonly<Record<Name, readonly Known[]>>): void {
    for (const row of rows) this.#makeRoom(row);
    for (const [name, column] of this.#columns) {
      const list = values[name];
      rows.forEach((row, i) => (column[row] = list[i] ?? NaN));
    }
  }

  /** Forget one row, so that a later owner of it does not inherit old numbers. */
  clear(row: number): void {
    for (const column of this.#columns.values()) if (row < column.length) column[row] = NaN;
  }

  #makeRoom(row: number): void {
    if (row < this.#capacity) return;
    this.#capacity = Math.max(FIRST_CAPACITY, this.#capacity * 2, row + 1);
    for (const [name, column] of this.#columns) {
      const wider = new Float64Array(this.#capacity).fill(NaN);
      wider.set(column);
      this.#columns.set(name, wider);
    }
  }
}
