/** A list that the hub keeps: read when the page is opened and after every change that is made here. */
import { Deed } from "./deed.svelte";

export class Listing<Entry> {
  readonly #read: () => Promise<readonly Entry[]>;
  #entries = $state.raw<readonly Entry[] | null>(null);
  readonly deed = new Deed();

  constructor(read: () => Promise<readonly Entry[]>) {
    this.#read = read;
    void this.reload();
  }

  /** `null` until they are there. */
  get entries(): readonly Entry[] | null {
    return this.#entries;
  }

  reload(): Promise<boolean> {
    return this.deed.run(() => this.#load());
  }

  /** Do something to the list, and read it again; tells whether that was done. */
  change(action: () => Promise<unknown>): Promise<boolean> {
    return this.deed.run(async () => {
      await action();
      await this.#load();
    });
  }

  async #load(): Promise<void> {
    this.#entries = await this.#read();
  }
}
