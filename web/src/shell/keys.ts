/** Single keys for those who keep their hands on the keyboard. They rest while someone types. */
import type { Controls } from "./controls";

export interface Keyboard extends Controls {
  goTo(page: "herd" | "users" | "timeline" | "usage"): void;
  search(): void;
}

const PREFIX_MILLISECONDS = 1200;
const NODE_BUTTON = "[data-node] button[aria-expanded]";

/** Listen; gives what ends that. */
export function listenForKeys(keyboard: Keyboard): () => void {
  let prefixUntil = 0;
  const pressed = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isBusy(event.target))
      return;
    const isAfterPrefix = event.timeStamp < prefixUntil;
    prefixUntil = 0;
    const actions: Record<string, () => void> = isAfterPrefix
      ? {
          h: () => keyboard.goTo("herd"),
          u: () => keyboard.goTo("users"),
          b: () => keyboard.goTo("timeline"),
          s: () => keyboard.goTo("usage"),
        }
      : {
          g: () => (prefixUntil = event.timeStamp + PREFIX_MILLISECONDS),
          "/": keyboard.search,
          j: () => moveToNode(1),
          k: () => moveToNode(-1),
          o: () => currentNodeButton()?.click(),
          p: keyboard.togglePause,
          r: keyboard.refresh,
          t: keyboard.nextTheme,
          "?": keyboard.help,
        };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
}

/** Whether keys belong to something else now: a field that is typed in, or an open dialog. */
function isBusy(target: EventTarget | null): boolean {
  if (document.querySelector("dialog[open]")) return true;
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches("input:not([type=radio], [type=checkbox]), textarea, select"))
  );
}

function currentNodeButton(): HTMLButtonElement | null {
  const node = document.activeElement?.closest("[data-node]");
  return node?.querySelector<HTMLButtonElement>("button[aria-expanded]") ?? null;
}

/** Focus the next or previous node; without one, the first that can be seen. */
function moveToNode(step: 1 | -1, isSecondLook = false): void {
  const buttons = [...document.querySelectorAll<HTMLButtonElement>(NODE_BUTTON)];
  const current = currentNodeButton();
  const next = current
    ? buttons[buttons.indexOf(current) + step]
    : buttons.find((button) => button.getBoundingClientRect().top >= topBarHeight());
  if (!next && current && !isSecondLook) {
    // A long list is drawn only near what is seen, and an open node may be higher than that.
    current.closest("[data-node]")?.scrollIntoView({ block: step > 0 ? "end" : "start" });
    const lookAgain = (): void => {
      if (currentNodeButton() === current) moveToNode(step, true); // else another key was quicker
    };
    requestAnimationFrame(() => requestAnimationFrame(lookAgain));
    return;
  }
  next?.focus({ preventScroll: true });
  // With all of the node's header, which is more than its button.
  next?.closest("[data-node] > *")?.scrollIntoView({ block: "nearest" });
}

function topBarHeight(): number {
  return document.querySelector("header")?.getBoundingClientRect().height ?? 0;
}
