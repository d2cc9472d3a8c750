import { basename } from "node:path";
import { vitePreprocess } from "@sveltejs/vite-plugin-svelte";

export default {
  preprocess: vitePreprocess(),
  compilerOptions: {
    runes: true,
    // Short: they stand in every element and every rule.
    cssHash: ({ hash, filename }) => `s${hash(basename(filename)).slice(0, 5)}`,
  },
};
