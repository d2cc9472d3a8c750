/** Something that is asked of the hub by a button: whether it is under way, and why it failed. */
import { HubError } from "../lib/request";

export class Deed {
  #isBusy = $state(false);
  #failure = $state.raw<Error | null>(null);

  get isBusy(): boolean {
    return this.#isBusy;
  }

  get failure(): Error | null {
    return this.#failure;
  }

  /** The hub's own word for why it failed. */
  get code(): string | null {
    return this.#failure instanceof HubError ? this.#failure.code : null;
  }

  /** The field that the hub found wrong. */
  get path(): string | null {
    return this.#failure instanceof HubError ? this.#failure.path : null;
  }

  /** Do it, unless it is under way; tells whether it was done. */
  async run(action: () => Promise<unknown>): Promise<boolean> {
    if (this.#isBusy) return false;
    this.#isBusy = true;
    this.#failure = null;
    try {
      await action();
      return true;
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error));
      // What was given up has not failed.
      if (failure.name !== "AbortError") this.#failure = failure;
      return false;
    } finally {
      this.#isBusy = false;
    }
  }

  /** For a form's `onsubmit`. */
  submit(action: () => Promise<unknown>): (event: SubmitEvent) => void {
    return (event) => {
      event.preventDefault();
      void this.run(action);
    };
  }

  forget(): void {
    this.#failure = null;
  }
}
