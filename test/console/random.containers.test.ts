import { ledgerBed, type TestLedger } from '@kronos/ledger/testing';
import type { Sketch } from '@kronos/placement/testing';
import { random, testLog } from '@kronos/projections/testing';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { browserOrNull, LIMIT_MS, READ_OR_NOT, watchedPage } from './page.ts';

/** Names that break what does not treat them as text. */
const NAME = 'web <b>eu</b>/1';
const HOSTILE = [
  '"><script>alert(1)</script>',
  "o'brien & söhne",
  '../../etc',
  '%2e%2e%2f',
  '{{7*7}}',
  'a\u202eb',
  'x'.repeat(200),
];
const NIGHTLY = process.env.KRONOS_NIGHTLY === '1';
/** Acts of one run. At night as many as fit into the time. */
const ACTS = 25;
const NIGHT_MS = 240_000;
const seed = Number(process.env.PROPERTY_SEED ?? 1);

const browser = await browserOrNull();
let bed: Awaited<ReturnType<typeof ledgerBed>>;
let ledger: TestLedger;
let page: Page;
let wrong: string[];
let log: ReturnType<typeof testLog>;
let draw: () => number;

const sketch = (busy: string): Sketch => ({
  policies: { cpu: { threshold: 0.2 }, memory: { threshold: 0.1 } },
  hosts: Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`host-${n}`, n === 3 ? { disabled: true } : {}])),
  vms: Object.fromEntries(
    HOSTILE.map((name, n) => [
      `uuid-${n}`,
      { host: n < 3 ? busy : `host-${n}`, w: { cpu: 0.1, memory: 0.05 }, set: { name } },
    ]),
  ),
});

afterAll(async () => {
  await browser?.close();
});
beforeEach(async ({ skip }) => {
  if (browser === null) return skip();
  draw = random(seed);
  bed = await ledgerBed();
  log = testLog(NAME, Date.now() - 60_000);
  log.configured({ searchWorkLimit: 20_000 });
  for (const busy of ['host-5', 'host-1', 'host-2']) {
    const moves = [
      { serverId: 'uuid-0', from: busy, to: 'host-4' },
      { serverId: 'uuid-1', from: busy, to: 'host-6', dependsOn: [1] },
    ];
    const id = log.pass(5).decided('dryRun', moves, { policies: imbalances() });
    await bed.observed(id, NAME, log.nowMs, sketch(busy));
  }
  await bed.append(log.events.splice(0));
  await bed.decided(await bed.observed('real', NAME, log.pass(5).nowMs, sketch('host-2')));
  ledger = await bed.start({ scope: [NAME, 'idle'] });
  ({ page, wrong } = await watchedPage(browser));
});
afterEach(async () => {
  if (browser === null) return;
  await page.context().close();
  await bed.close();
});

const imbalances = () => [
  { policy: 'cpu', imbalance: 0.7, threshold: 0.2, participates: true, detected: true, sustainedCycles: 1 },
];
const pick = <T>(list: readonly T[]): T => list[Math.floor(draw() * list.length)] as T;

/** The acts of a person, by name. */
const acts: Readonly<Record<string, () => Promise<unknown>>> = {
  follow: () => clickOne('main a:visible'),
  press: () => clickOne('main button:visible:not([disabled])'),
  tick: () => clickOne('main input[type=checkbox]:visible'),
  navigate: () => clickOne('header a:visible'),
  key: () =>
    page.keyboard.press(
      pick([
        'ArrowLeft',
        'ArrowRight',
        'Shift+ArrowLeft',
        'Home',
        'End',
        'Escape',
        'j',
        'k',
        'w',
        't',
        '?',
        ' ',
        '/',
        'Tab',
        'Enter',
      ]),
    ),
  search: async () => {
    await page.keyboard.press('Escape');
    await page.locator('#search input').fill(pick(['host', 'uuid', 'what if web', pick(HOSTILE).slice(0, 100)]));
    await page.keyboard.press(pick(['ArrowDown', 'Enter', 'Escape']));
  },
  drag: async () => {
    const thumb = page.locator('main input[type=range]').first();
    if ((await thumb.count()) === 0) return;
    const box = await thumb.boundingBox({ timeout: 2000 }).catch(() => null);
    if (box === null) return;
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * draw(), box.y + box.height / 2, { steps: 5 });
    await page.mouse.up();
  },
  type: async () => {
    const field = page.locator('main input[type=number]:visible');
    const n = await field.count();
    if (n === 0) return;
    await field
      .nth(Math.floor(draw() * n))
      .fill(pick(['0', '0.5', '3', '']), { timeout: 2000 })
      .catch(() => undefined);
    await page.keyboard.press('Tab');
  },
  back: async () => {
    await page.goBack({ timeout: 5000 }).catch(() => undefined);
    // Before the first view there is an empty page.
    if (!page.url().startsWith(ledger.url)) await page.goto(ledger.url);
  },
  resize: () => page.setViewportSize({ width: pick([320, 700, 1280, 2560]), height: pick([500, 900]) }),
  reconnect: async () => {
    await page.context().setOffline(true);
    await page.keyboard.press('ArrowLeft');
    await page.context().setOffline(false);
  },
  event: async () => {
    if (draw() < 0.5) log.pass(1).paused();
    else log.pass(1).resumed();
    await bed.append(log.events.splice(0));
  },
};

async function clickOne(selector: string): Promise<void> {
  const found = page.locator(selector);
  const n = await found.count();
  // A view may be drawn again in between.
  if (n > 0)
    await found
      .nth(Math.floor(draw() * n))
      .click({ timeout: 2000 })
      .catch(() => undefined);
}

/** Every view has a heading, says what is wrong or that it reads, and leads on. */
async function stands(): Promise<void> {
  await page
    .locator('main h1, main [data-state=loading], main [data-state=error]')
    .first()
    .waitFor({ timeout: LIMIT_MS });
  expect(await page.locator('nav a').count()).toBe(4);
}

describe('the console withstands', () => {
  it(`whatever a person does, from seed ${seed}`, async () => {
    await page.goto(ledger.url);
    const done: string[] = [];
    const began = performance.now();
    for (let n = 0; NIGHTLY ? performance.now() - began < NIGHT_MS : n < ACTS; n++) {
      const name = pick(Object.keys(acts));
      done.push(name);
      await acts[name]?.();
      await stands();
      expect([done.slice(-8), wrong]).toEqual([done.slice(-8), []]);
      // The address is the whole state of a view.
      if (n % 12 !== 11) continue;
      await page.keyboard.press('Escape');
      await page.locator('#freshness', { hasText: READ_OR_NOT }).waitFor();
      // A page that has only the address shows the same; this one may still have an event before it.
      const fresh = await page.context().newPage();
      await fresh.goto(await page.evaluate<string>('location.href'));
      await fresh.locator('#freshness', { hasText: READ_OR_NOT }).waitFor({ timeout: LIMIT_MS });
      const title = await fresh.title();
      await fresh.close();
      await expect
        .poll(async () => [done.slice(-8), await page.title()], { timeout: LIMIT_MS })
        .toEqual([done.slice(-8), title]);
      await page.reload();
      await page.locator('#freshness', { hasText: READ_OR_NOT }).waitFor();
      expect([done.slice(-8), await page.title()]).toEqual([done.slice(-8), title]);
    }
  });
});
