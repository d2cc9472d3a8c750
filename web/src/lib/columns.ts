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

  /**
   * Write position i of a list to row `rows[i]`, times `unit`: what one of its unit is in ours. Positions are those of
   * the whole list, or from `from` up to `to`.
   */
  write(
    name: Name,
    rows: ArrayLike<number>,
    values: ArrayLike<Known>,
    unit = 1,
    from = 0,
    to = rows.length,
  ): void {
    let last = -1;
    for (let i = from; i < to; i += 1) last = Math.max(last, rows[i] as number);
    this.#makeRoom(last);
    const column = this.#columns.get(name);
    if (!column) return;
    for (let i = from; i < to; i += 1) {
      const value = values[i];
      column[rows[i] as number] = value == null ? NaN : value * unit;
    }
  }

  /** A whole column, for those who walk over all rows; unknown is NaN in it. Good until the next message. */
  column(name: Name): Float64Array {
    return this.#columns.get(name) ?? new Float64Array(0);
  }

  /** The same numbers, which later writes do not touch. */
  copy(): NumberColumns<Name> {
    const copy = new NumberColumns(this.names);
    copy.#capacity = this.#capacity;
    for (const [name, column] of this.#columns) copy.#columns.set(name, column.slice());
    return copy;
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
