/** Loads the page again when the browser could not fetch one of its scripts or style sheets: without them it stays empty. */
const FIRST_MS = 1000;
const MOST_MS = 30_000;
/** Loads of this tab in a row that failed: each waits twice as long as the one before. */
const COUNT = 'kronos.reloads';
let failed = false;

addEventListener(
  'error',
  ({ target }) => {
    // The window's own errors are those of scripts that run: they would only happen again.
    if (target === globalThis || failed) return;
    failed = true;
    document
      .getElementById('freshness')
      ?.replaceChildren('A file of the console could not be loaded. Loading it again.');
    const before = Number(sessionStorage.getItem(COUNT) ?? 0);
    sessionStorage.setItem(COUNT, String(before + 1));
    setTimeout(() => location.reload(), Math.min(MOST_MS, FIRST_MS * 2 ** before));
  },
  // Such an error does not bubble.
  true,
);
addEventListener('load', () => {
  if (!failed) sessionStorage.removeItem(COUNT);
});
