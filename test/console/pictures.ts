/**
 * Pictures of the console, compared with the ones that are kept in `pictures/`. Nothing of this machine is in them: the font is
 * DejaVu Sans from a package, the zone is UTC, and the times and the ids of cycles in the answers of the ledger are shifted to a
 * fixed day.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheDir } from '@kronos/eventlog/testing';
import pixelmatch from 'pixelmatch';
import type { Browser, BrowserContext, Route } from 'playwright-core';
import { PNG } from 'pngjs';

const KEPT = fileURLToPath(new URL('pictures', import.meta.url));
/** The directory for pictures that differ. */
const SEEN = join(cacheDir(process.env), 'console-pictures');
/** Set: what is seen is kept. */
const KEEP = process.env.KRONOS_KEEP_PICTURES !== undefined;

/** A ledger closes a connection that nothing has used for a while: a request that meets that is sent again. */
const RETRIES = 3;

/** Share of the pixels that may differ: another Chromium draws edges of letters and of lines a little otherwise. */
const MOST_DIFFERENT = 0.015;
/** Difference of colour from which a pixel counts, 0 to 1: as pixelmatch measures it. */
const LEAST_COLOUR = 0.08;

/** The difference between a picture and the kept one. */
export type Comparison = {
  /** Share of the pixels, 0 to 1; 1 where the sizes differ. */
  readonly different: number;
  readonly sizes: string;
  /** PNG with the differing pixels in red. */
  readonly picture: Buffer;
};

/** Null where they are alike: the same size, and at most `MOST_DIFFERENT` of the pixels differ. */
export function compare(seen: Buffer, kept: Buffer): Comparison | null {
  const [a, b] = [PNG.sync.read(seen), PNG.sync.read(kept)];
  const sizes = `${a.width}x${a.height}, kept ${b.width}x${b.height}`;
  if (a.width !== b.width || a.height !== b.height) return { different: 1, sizes, picture: seen };
  const out = new PNG({ width: a.width, height: a.height });
  const pixels = pixelmatch(a.data, b.data, out.data, a.width, a.height, { threshold: LEAST_COLOUR });
  const different = pixels / (a.width * a.height);
  if (different <= MOST_DIFFERENT) return null;
  return { different, sizes, picture: PNG.sync.write(out) };
}

/** How the picture `name` differs from the kept one; null: it does not. */
export function judge(name: string, seen: Buffer): string | null {
  const file = join(KEPT, `${name}.png`);
  if (KEEP) {
    mkdirSync(KEPT, { recursive: true });
    // Unfiltered rows compress best where most of them are alike.
    writeFileSync(
      file,
      PNG.sync.write(PNG.sync.read(seen), { deflateLevel: 9, deflateStrategy: 0, filterType: 0, colorType: 2 }),
    );
    return null;
  }
  const found = compare(seen, readFileSync(file));
  if (found === null) return null;
  mkdirSync(SEEN, { recursive: true });
  writeFileSync(join(SEEN, `${name}-difference.png`), found.picture);
  const written = join(SEEN, `${name}.png`);
  writeFileSync(written, seen);
  return `${name}: ${(100 * found.different).toFixed(1)} % of the pixels differ (${found.sizes}); seen: ${written}. If it is meant so: KRONOS_KEEP_PICTURES=1 npm run test:console`;
}

/** The ledger's clock and the number of its cycle at that minute. */
type Moment = { readonly ms: number; readonly cycle: number };
const momentOf = (ms: number): Moment => ({ ms, cycle: Math.floor(ms / 60_000) });
const ISO_TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;
const SHOWN = momentOf(Date.UTC(2026, 0, 1, 12));

/** The times in a text, and the numbers of cycles within two hours, as they would be at another moment. */
const shifted = (text: string, from: Moment, to: Moment): string =>
  text
    .replaceAll(ISO_TIME, (time) => new Date(Date.parse(time) - from.ms + to.ms).toISOString())
    .replaceAll(/\b\d{8}\b/g, (digits) => {
      const cycles = Number(digits) - from.cycle;
      return Math.abs(cycles) <= 120 ? String(to.cycle + cycles) : digits;
    });

/**
 * A context in which a console shows the same on every machine and at every time. `nowMs`: the ledger's clock. `storedMs`: from
 * when on things were stored, after all times that the log states: these times come from the server's clock and are all shown as
 * one.
 */
export async function fixedContext(browser: Browser, nowMs: number, storedMs: number): Promise<FixedContext> {
  const now = momentOf(nowMs);
  const context = await browser.newContext({
    deviceScaleFactor: 0.5,
    locale: 'en-GB',
    timezoneId: 'UTC',
    reducedMotion: 'reduce',
    // For the font, which the policy of the console does not allow.
    bypassCSP: true,
  });
  await context.clock.setFixedTime(SHOWN.ms);
  await context.route('**/console/tokens.css', withFont);
  await context.route('**/fixed-*.woff2', (route) =>
    route.fulfill({ path: fontFiles[route.request().url().includes('700') ? 700 : 400] }),
  );
  await context.route('**/api/v1/**', async (route) => {
    const url = route.request().url();
    if (url.endsWith('/changes')) return await route.continue();
    const answer = await route.fetch({ maxRetries: RETRIES, url: shifted(url.replaceAll('%3A', ':'), SHOWN, now) });
    const told = (await answer.text()).replaceAll(ISO_TIME, (time) => {
      const ms = Date.parse(time);
      return ms >= storedMs && ms < nowMs ? new Date(storedMs).toISOString() : time;
    });
    // A decision has the digest of what it was made of: that stays as it is.
    const body = url.includes('/decision?') ? await answer.text() : shifted(told, now, SHOWN);
    const headers = { ...answer.headers(), date: new Date(SHOWN.ms).toUTCString() };
    await route.fulfill({ response: answer, headers, body });
  });
  return { context, shownAs: (text) => shifted(text, now, SHOWN) };
}

export type FixedContext = {
  readonly context: BrowserContext;
  /** A text with times or ids of the ledger, as the page has it. */
  readonly shownAs: (text: string) => string;
};

const require = createRequire(import.meta.url);
const fontFiles = {
  400: require.resolve('@fontsource/dejavu-sans/files/dejavu-sans-latin-400-normal.woff2'),
  700: require.resolve('@fontsource/dejavu-sans/files/dejavu-sans-latin-700-normal.woff2'),
} as const;
const fontFace = (weight: 400 | 700): string =>
  `@font-face { font-family: Fixed; font-weight: ${weight}; src: url(/fixed-${weight}.woff2); }`;

/** The tokens of the console, with the font of the pictures in the place of the system's. */
async function withFont(route: Route): Promise<void> {
  const answer = await route.fetch({ maxRetries: RETRIES });
  const fonts = ':root { --font: 14px / 1.45 Fixed; --mono: 12px / 1.4 Fixed; }';
  const body = [await answer.text(), fontFace(400), fontFace(700), fonts].join('\n');
  await route.fulfill({ response: answer, body });
}
