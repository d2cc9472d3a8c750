/** Tells the lists of bookings on this page that one was made, changed or ended here. */
class BookingNews {
  #version = $state(0);

  /** Counts up. */
  get version(): number {
    return this.#version;
  }

  tell(): void {
    this.#version += 1;
  }
}

export const news = new BookingNews();
