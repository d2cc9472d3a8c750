/** The answer to one question at a time: what was told last stays until the next answer is there. */
import { request, type RequestOptions, wordsOf } from "../lib/request";

export class Feed<Answer> {
  readonly #path: string;
  readonly #request: typeof request;
  #answer = $state.raw<Answer | null>(null);
  #error = $state<string | null>(null);
  #isAsking = $state(false);
  #abort: AbortController | null = null;

  constructor(path: string, ask: typeof request = request) {
    this.#path = path;
    this.#request = ask;
  }

  /** The last one there was, which may be to the question before; `null` until then. */
  get answer(): Answer | null {
    return this.#answer;
  }

  /** Why the last question has no answer, in words. */
  get error(): string | null {
    return this.#error;
  }

  get isAsking(): boolean {
    return this.#isAsking;
  }

  /** Ask, and forget the question before; gives what gives this one up, as an effect wants it. */
  ask(query: NonNullable<RequestOptions["query"]>): () => void {
    this.#abort?.abort();
    const abort = (this.#abort = new AbortController());
    this.#isAsking = true;
    const done = (error: string | null): void => {
      if (this.#abort !== abort || abort.signal.aborted) return;
      this.#error = error;
      this.#isAsking = false;
    };
    this.#request<Answer>("GET", this.#path, { query, signal: abort.signal }).then(
      (answer) => {
        if (!abort.signal.aborted) this.#answer = answer;
        done(null);
      },
      (error: unknown) => done(wordsOf(error)),
    );
    return () => abort.abort();
  }
}
