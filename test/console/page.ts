import axeCore from 'axe-core';
import type { Browser, Locator, Page } from 'playwright-core';
import { launchChromium, NoChromium } from './chromium.ts';

/** Far beyond what a step takes: it ends only what hangs. */
export const LIMIT_MS = 120_000;

/** The page shows what it read, of now or of a recorded moment. */
export const READ = /^(Live|A past moment)$/;
/** The same, or why it does not. */
export const READ_OR_NOT = /^(Live|A past moment|Not shown)$/;

/** Null where none can be had: without a network, or on a system without apt-get. Then the tests are skipped. */
export const browserOrNull = (): Promise<Browser | null> =>
  launchChromium().catch((error: unknown) => {
    if (!(error instanceof NoChromium)) throw error;
    console.warn(`skipped: ${error.message}`);
    return null;
  });

/** A page, and what it did that it must never do: break its policy, or fail. */
export async function watchedPage(browser: Browser): Promise<{ readonly page: Page; readonly wrong: string[] }> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' });
  const page = await context.newPage();
  page.setDefaultTimeout(LIMIT_MS);
  page.setDefaultNavigationTimeout(LIMIT_MS);
  const wrong: string[] = [];
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('console', (message) => {
    // The console of Chromium names every answer above 399 too.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) wrong.push(message.text());
  });
  return { page, wrong };
}

/** Types into the palette, and waits until what it offers answers the whole text. */
export async function palette(page: Page, text: string): Promise<void> {
  await page.keyboard.press('/');
  await page.locator('#search input:focus').waitFor();
  await page.keyboard.type(text);
  await page.locator('#found[aria-busy=false]').waitFor();
}

/** The visible text of an element. */
export const seen = async (element: Locator) =>
  // biome-ignore lint/performance/useDomNodeTextContent: hidden text is not seen, and cells stand apart
  (await element.innerText()).replace(/\s+/g, ' ');

/** Violations of WCAG 2.1 A and AA, as axe finds them. */
export async function axe(page: Page): Promise<string[]> {
  // By the debugging protocol, which the page's policy does not hold for.
  await page.evaluate(axeCore.source);
  return await page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    const { violations } = await axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
  });
}

/**
 * The unreadable places in the pictures of a page: a text that overlaps another one, and a line that crosses a text. Measured in the browser;
 * boxes that touch by less than `SLACK` pixels do not overlap.
 */
export async function unreadable(page: Page): Promise<string[]> {
  return (await page.evaluate(`{
    const SLACK = 1.5;
    const crossing = (a, b) =>
      Math.min(a.right, b.right) - Math.max(a.left, b.left) > SLACK && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > SLACK;
    const found = [];
    for (const picture of document.querySelectorAll('main svg')) {
      const texts = [...picture.querySelectorAll('text')].map((text) => ({ words: text.textContent, box: text.getBoundingClientRect() }));
      for (const [i, one] of texts.entries())
        for (const other of texts.slice(i + 1)) if (crossing(one.box, other.box)) found.push(one.words + ' is on ' + other.words);
      for (const line of picture.querySelectorAll('.ribbon path, .lane')) {
        const at = line.getScreenCTM();
        for (let length = 0; length < line.getTotalLength(); length += 3) {
          const { x, y } = line.getPointAtLength(length).matrixTransform(at);
          const under = texts.find(({ box }) => x > box.left && x < box.right && y > box.top + SLACK && y < box.bottom - SLACK);
          if (under === undefined) continue;
          found.push('a line crosses ' + under.words);
          break;
        }
      }
    }
    found;
  }`)) as string[];
}
