/** Loads the page again when the browser could not fetch one of its scripts or style sheets: without them it stays empty. */
const RELOAD_MS = 1000;

addEventListener(
  'error',
  ({ target }) => {
    // The window's own errors are those of scripts that run: they would only happen again.
    if (target === globalThis) return;
    document
      .getElementById('freshness')
      ?.replaceChildren('A file of the console could not be loaded. Loading it again.');
    setTimeout(() => location.reload(), RELOAD_MS);
  },
  // Such an error does not bubble.
  true,
);
