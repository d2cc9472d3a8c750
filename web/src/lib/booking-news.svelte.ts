/** Tells the parts of this page that show bookings that one was made, changed or ended here. */
interface Done {
  /** Of the booking. */
  readonly id: number;
  readonly what: "booked" | "saved";
}

class BookingNews {
  #version = $state(0);
  #done = $state.raw<Done | null>(null);

  /** Counts up. */
  get version(): number {
    return this.#version;
  }

  /** What the form has just done; its booking is shown next, and says so. */
  get done(): Done | null {
    return this.#done;
  }

  tell(done: Done | null = null): void {
    this.#done = done;
    this.#version += 1;
  }

  /** Nobody is looking at that booking any more. */
  forget(): void {
    this.#done = null;
  }
}

export const news = new BookingNews();
