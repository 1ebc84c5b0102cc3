/** The measurements of `bench:console` in a Chromium. */
import type { CDPSession, Page } from 'playwright-core';

/** Moments that the page showed while the thumb of the time bar was held and moved. */
export type Dragged = {
  readonly moments: number;
  readonly perSecond: number;
  readonly longestGapMs: number;
  /** CPU of the tab for each of them: scripts, layout and painting. */
  readonly tabMsPerMoment: number;
  /** Requests that failed, or that the ledger refused. */
  readonly failed: number;
};

/** Between two moves of the pointer. */
const MOVE_MS = 16;
/** Moves of the pointer for one radian of its way to and fro: fast enough that the recorded moments do not limit the figure. */
const MOVES_PER_RADIAN = 6;

/** Drags over all moments, back and forth, for this long. The page is at an aggregate. */
export async function drag(page: Page, seconds: number): Promise<Dragged> {
  const thumb = page.getByRole('slider', { name: 'Recorded cycle' });
  await thumb.scrollIntoViewIfNeeded();
  const box = await thumb.boundingBox();
  if (box === null) throw new Error('the page has no time bar');
  let failed = 0;
  page.on('requestfailed', (request) => {
    if (request.url().includes('/api/')) failed++;
  });
  page.on('response', (response) => {
    if (response.status() >= 400) failed++;
  });
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width - 8, y);
  await page.mouse.down();
  await page.evaluate(`{
    globalThis.shownAt = [performance.now()];
    const thumb = document.querySelector('input[type=range]');
    globalThis.watching?.disconnect();
    globalThis.watching = new MutationObserver(() => globalThis.shownAt.push(performance.now()));
    globalThis.watching.observe(thumb, { attributes: true, attributeFilter: ['aria-valuetext'] });
  }`);
  const session = await page.context().newCDPSession(page);
  // In CPU time: others use the machine, too.
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const busyBefore = await busySeconds(session);
  const untilMs = performance.now() + seconds * 1000;
  for (let i = 0; performance.now() < untilMs; i++) {
    await page.mouse.move(box.x + box.width * (0.5 + 0.48 * Math.cos(i / MOVES_PER_RADIAN)), y);
    await page.waitForTimeout(MOVE_MS);
  }
  const shownAt = (await page.evaluate('[...globalThis.shownAt, performance.now()]')) as number[];
  const busyMs = 1000 * ((await busySeconds(session)) - busyBefore);
  await session.detach();
  await page.mouse.up();
  const gaps = shownAt.slice(1).map((at, i) => at - (shownAt[i] ?? at));
  const lasted = gaps.reduce((sum, gap) => sum + gap, 0) / 1000;
  const moments = shownAt.length - 2;
  return {
    moments,
    perSecond: moments / lasted,
    longestGapMs: Math.max(...gaps),
    tabMsPerMoment: busyMs / Math.max(1, moments),
    failed,
  };
}

async function busySeconds(session: CDPSession): Promise<number> {
  const { metrics } = await session.send('Performance.getMetrics');
  return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0;
}

/** Time from a changed option to the first answer, and to that of the whole search. */
export type Answered = {
  readonly medianMs: number;
  readonly worstMs: number;
  readonly wholeMs: number;
};

/** Changes the threshold of a policy several times. The page is at a what-if that has its answer. */
export async function askWhatIf(page: Page, policy: string, times: number): Promise<Answered> {
  const first: number[] = [];
  const whole: number[] = [];
  const field = page.getByLabel(`${policy}: Threshold`);
  for (let i = 1; i <= times; i++) {
    // The answer before it must not be taken for this one's.
    await page.locator('[data-state]').evaluateAll((all) => {
      for (const element of all) element.setAttribute('data-before', '');
    });
    await field.fill(String(0.1 + i / 100));
    const from = performance.now();
    await field.blur();
    await page.locator('[data-state=short]:not([data-before]), [data-state=whole]:not([data-before])').waitFor();
    first.push(performance.now() - from);
    await page.locator('[data-state=whole]:not([data-before])').waitFor({ timeout: 120_000 });
    whole.push(performance.now() - from);
  }
  const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
  return { medianMs: median(first), worstMs: Math.max(...first), wholeMs: median(whole) };
}
