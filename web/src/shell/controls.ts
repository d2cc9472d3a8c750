/** What a viewer can do to the page as a whole, by button and by key. */
export interface Controls {
  togglePause(): void;
  refresh(): void;
  nextTheme(): void;
  help(): void;
  /** Log in again without leaving the page. */
  logIn(): void;
}
