/** Dark, light or as the system is. The attribute on <html> is first set by public/theme.js, before the first paint. */

export const THEME_CHOICES = ["system", "light", "dark"] as const;
export type ThemeChoice = (typeof THEME_CHOICES)[number];
export type ResolvedTheme = "light" | "dark";

const KEY = "gpuherd.theme";
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

class Theme {
  #choice = $state<ThemeChoice>(recall());
  #system = $state<ResolvedTheme>(systemIsDark.matches ? "dark" : "light");

  get choice(): ThemeChoice {
    return this.#choice;
  }

  /** What is shown; a canvas draws anew when it changes. */
  get resolved(): ResolvedTheme {
    return this.#choice === "system" ? this.#system : this.#choice;
  }

  choose(choice: ThemeChoice): void {
    this.#choice = choice;
    this.#apply();
    try {
      if (choice === "system") localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, choice);
    } catch {
      // Private windows and full stores refuse; the choice then lasts as long as the page.
    }
  }

  /** The next of the three, in the order in which they are listed. */
  get next(): ThemeChoice {
    return THEME_CHOICES[(THEME_CHOICES.indexOf(this.#choice) + 1) % THEME_CHOICES.length] ?? "system";
  }

  /** Follow the system, and what other windows of this page choose; gives what ends that. */
  start(): () => void {
    const systemChanged = (): void => {
      this.#system = systemIsDark.matches ? "dark" : "light";
      this.#apply();
    };
    const stored = (event: StorageEvent): void => {
      if (event.key !== KEY && event.key !== null) return;
      this.#choice = recall();
      this.#apply();
    };
    systemIsDark.addEventListener("change", systemChanged);
    window.addEventListener("storage", stored);
    systemChanged(); // it may have changed while the page was loading
    return () => {
      systemIsDark.removeEventListener("change", systemChanged);
      window.removeEventListener("storage", stored);
    };
  }

  /** At once and not in an effect: what reads colours from the page in this same turn must find the new ones. */
  #apply(): void {
    document.documentElement.dataset["theme"] = this.resolved;
  }
}

function recall(): ThemeChoice {
  try {
    const kept = localStorage.getItem(KEY);
    return THEME_CHOICES.find((choice) => choice === kept) ?? "system";
  } catch {
    return "system";
  }
}

export const theme = new Theme();
