/** The answer to one question at a time: what was told last stays until the next answer is there. */
import { request, type RequestOptions, wordsOf } from "../lib/request";

export class Feed<Answer> {
  readonly #path: string;
  #answer = $state.raw<Answer | null>(null);
  #error = $state<string | null>(null);
  #isAsking = $state(false);
  #abort: AbortController | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  /** `null` until there is one, and where the last question failed. */
  get answer(): Answer | null {
    return this.#answer;
  }

  /** Why there is no answer, in words. */
  get error(): string | null {
    return this.#error;
  }

  get isAsking(): boolean {
    return this.#isAsking;
  }

  /** Ask; gives what gives it up, as an effect wants it. */
  ask(query: RequestOptions["query"]): () => void {
    this.#abort?.abort();
    const abort = (this.#abort = new AbortController());
    this.#isAsking = true;
    request<Answer>("GET", this.#path, { ...(query && { query }), signal: abort.signal })
      .then(
        (answer) => this.#take(answer, null),
        (error: unknown) => {
          if (!abort.signal.aborted) this.#take(null, wordsOf(error));
        },
      )
      .finally(() => {
        if (this.#abort === abort) this.#isAsking = false;
      });
    return () => abort.abort();
  }

  #take(answer: Answer | null, error: string | null): void {
    this.#answer = answer;
    this.#error = error;
  }
}
