// Settings of the Svelte compiler: runes only, styles live in src/styles.
export default {
  compilerOptions: { runes: true },
};
