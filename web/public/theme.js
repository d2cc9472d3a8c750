// Sets the theme before the first paint; src/shell/theme.svelte.ts takes over from here. A file of its own that holds
// up rendering, because the content security policy allows no inline script.
(function () {
  var choice = null;
  try {
    choice = localStorage.getItem("gpuherd.theme");
  } catch {
    // Storing is not allowed here: the system decides.
  }
  var isDark =
    choice === "dark" || (choice !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
})();
