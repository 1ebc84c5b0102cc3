/** The documentation's site in a browser, opened as files: no server stands behind it. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { axe, browserOrNull, seen, watchedPage } from './page.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string };
const browser = await browserOrNull();
afterAll(async () => {
  await browser?.close();
});

it.skipIf(browser === null)('is searched, names its version, and can be read by everybody', async () => {
  if (browser === null) return;
  const directory = mkdtempSync(join(tmpdir(), 'kronos-site-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  execFileSync(process.execPath, [join(root, 'scripts/site.ts'), directory]);
  const { page, wrong } = await watchedPage(browser);
  await page.goto(pathToFileURL(join(directory, 'index.html')).href);
  await page.waitForURL(/\/README|\/index\.html$/);
  await page.getByRole('link', { name: 'Installing Kronos' }).first().click();
  // Its script has run: before that nothing listens to keys.
  await page.waitForURL(/\/install\.html$/);
  expect(await page.locator('#versions').inputValue()).toBe(version);
  await page.keyboard.press('/');
  await page.keyboard.type('KronosFailoverR');
  // The results of the first letters are gone: Enter follows the first link.
  const first = page.locator('#found li:first-child a', { hasText: 'KronosFailoverRoom' });
  await first.waitFor();
  expect(await seen(first)).toContain('KronosFailoverRoom Runbook');
  await page.keyboard.press('Enter');
  await page.waitForURL(/docs\/runbook\.html#kronosfailoverroom$/);
  await page.keyboard.press('/');
  await page.keyboard.type('zzzzqqqq');
  await page.getByText('Nothing is found').waitFor();
  expect(wrong).toEqual([]);
  // It reads the style sheet anew, which a page that is a file may not: Chromium complains.
  expect(await axe(page)).toEqual([]);

  // On a phone the text comes first, and the menu is one touch away.
  await page.setViewportSize({ width: 390, height: 800 });
  await page.goto(pathToFileURL(join(directory, version, 'docs/install.html')).href);
  const shownAt = async (what: string) => (await page.locator(what).boundingBox())?.y ?? Number.NaN;
  expect(await shownAt('h1')).toBeLessThan(200);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
  await page.getByRole('link', { name: 'Pages' }).click();
  await page.waitForURL(/#pages$/);
  expect(await shownAt('nav')).toBeLessThan(200);
});
