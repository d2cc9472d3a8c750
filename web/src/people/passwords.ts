/** What the page can say of a new password; the hub decides. */

export const LEAST_LENGTH = 10;
const STRONG_LENGTH = 16;
const STRONG_VARIETY = 8;

export type PasswordVerdict = "empty" | "short" | "name" | "good" | "strong";

/** Length counts most: it is what guessing has to pay for. */
export function passwordVerdict(password: string, name: string): PasswordVerdict {
  if (password === "") return "empty";
  if (password.length < LEAST_LENGTH) return "short";
  if (password.toLowerCase() === name.trim().toLowerCase()) return "name";
  const isVaried = new Set(password).size >= STRONG_VARIETY;
  return password.length >= STRONG_LENGTH && isVaried ? "strong" : "good";
}
