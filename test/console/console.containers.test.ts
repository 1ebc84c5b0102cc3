import { ALL } from '@kronos/contracts';
import { ledgerBed, type TestLedger } from '@kronos/ledger/testing';
import type { Sketch } from '@kronos/placement/testing';
import { testLog } from '@kronos/projections/testing';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { axe, browserOrNull, LIMIT_MS, palette, READ, seen, unreadable, watchedPage } from './page.ts';

const NAME = 'web <b>eu</b>/1';

const browser = await browserOrNull();
let bed: Awaited<ReturnType<typeof ledgerBed>>;
let ledger: TestLedger;
let page: Page;
let log: ReturnType<typeof testLog>;
let planId: string;
/** Breaches of the page's Content-Security-Policy, and its errors: there must be none. */
let wrong: string[];

/** `of`: begins the names of hosts and VMs. What the log knows of these counts in every aggregate that has them. */
const sketch = (hosts: number, busy: string, of = ''): Sketch => ({
  policies: { cpu: { threshold: 0.2 }, memory: { threshold: 0.1 } },
  hosts: Object.fromEntries(
    Array.from({ length: hosts }, (_, n) => [`${of}host-${n}`, n === 3 ? { disabled: true } : {}]),
  ),
  vms: {
    [`${of}uuid-1`]: { host: busy, w: { cpu: 0.5, memory: 0.1 }, set: { name: 'shop <img src=x onerror=alert(1)>' } },
    [`${of}uuid-2`]: { host: busy, w: { cpu: 0.2, memory: 0.1 }, set: { name: 'shop-2' } },
    [`${of}uuid-3`]: { host: `${of}host-2`, w: { cpu: 0.1, memory: 0.05 }, set: { name: 'db-1' } },
  },
});

afterAll(async () => {
  await browser?.close();
});

beforeEach(async ({ skip }) => {
  if (browser === null) return skip();
  bed = await ledgerBed();
  log = testLog(NAME, Date.now() - 25_000);
  log.configured();
  const policies = [
    { policy: 'cpu', imbalance: 0.7, threshold: 0.2, participates: true, detected: true, sustainedCycles: 1 },
  ];
  const first = log.decided('none', [], { policies });
  await bed.observed(first, NAME, log.nowMs, sketch(12, 'host-5'));
  const moves = [
    { serverId: 'uuid-1', from: 'host-1', to: 'host-4' },
    { serverId: 'uuid-2', from: 'host-1', to: 'host-5', dependsOn: [1] },
  ];
  planId = log.pass(20).decided('released', moves, { policies });
  await bed.observed(planId, NAME, log.nowMs, sketch(12, 'host-1'));
  log.pass(1).started({ task: `${planId}-s1` });
  await bed.append(log.events.splice(0));
  ledger = await bed.start({ scope: [NAME, 'idle'] });
  ({ page, wrong } = await watchedPage(browser));
});
afterEach(async () => {
  if (browser === null) return;
  await page.context().close();
  await bed.close();
  expect(wrong).toEqual([]);
});

/** Opens a view and waits until its data is shown. */
async function open(hash = ''): Promise<void> {
  // Another fragment alone would load nothing, and the view before it would pass for this one.
  await page.goto('about:blank');
  await page.goto(`${ledger.url}/${hash}`);
  await shown();
}
const shown = () => page.locator('#freshness', { hasText: READ }).waitFor();
/** Waits for the parts that are read after the rest. */
const complete = () => expect.poll(() => page.locator('[data-state=loading]').count(), { timeout: LIMIT_MS }).toBe(0);
const view = (path = '') => `#/aggregates/${encodeURIComponent(NAME)}${path}`;
const region = (name: string) => page.locator(`section[aria-label="${name}"]`);
const text = (name: string) => seen(region(name));
/** Opens a folded part, and returns what a person then sees of it. */
async function unfolded(name: string): Promise<string> {
  await region(name).locator('summary').click();
  return await text(name);
}

describe('the console shows', () => {
  it('itself, though a file could not be fetched at first', async () => {
    for (const file of ['app.js', 'parts.js', 'console.css']) {
      let failed = 0;
      await page.route(
        `**/console/${file}`,
        (route) => {
          failed += 1;
          return route.abort();
        },
        { times: 1 },
      );
      await open();
      expect([file, failed]).toEqual([file, 1]);
      // The next failure is the first one again.
      const count = () => page.evaluate("sessionStorage.getItem('kronos.reloads')");
      await expect.poll(count, { timeout: LIMIT_MS }).toBeNull();
    }
  });

  it('the fleet: every aggregate, the alarms, and what moves; a link leads to each', async () => {
    await open();
    expect(await text('Aggregates')).toMatch(
      /web <b>eu<\/b>\/1 12 hosts · 3 VMs Moving 2 in flight .*3\.50×.*idle not seen yet Nothing decided yet/,
    );
    expect(await text('Aggregates')).toContain('host-1 70 %');
    const bars = region('Aggregates').getByRole('img', { name: /^cpu: 1 of 11 hosts above the band, / });
    expect((await bars.locator('path.warm').getAttribute('d'))?.match(/z/g)).toHaveLength(1);
    expect(await text('Moving now')).toMatch(/name-of-uuid-1 id host-1 host-4 balance under way/);
    await region('Aggregates').getByRole('link', { name: NAME }).click();
    await page.getByRole('heading', { level: 1, name: NAME }).waitFor();
    expect(await page.title()).toBe(`${NAME} · Kronos`);
  });

  it('other regions: what waits for a person there, or why that is not known, with a link to each console', async () => {
    const here = await bed.start({ scope: ['gpu'], regions: [`west=${ledger.url}`, 'north=http://127.0.0.1:1'] });
    await page.goto(here.url);
    await region('Other regions').getByText('ECONNREFUSED').waitFor();
    expect(await text('Other regions')).toMatch(
      /west 2 aggregates · 12 hosts · 3 VMs .*3\.50× 2 north not known .*ECONNREFUSED/,
    );
    expect(await axe(page)).toEqual([]);
    await region('Other regions').getByRole('link', { name: 'west' }).click();
    await region('Aggregates').getByRole('link', { name: NAME }).waitFor();
    expect(page.url()).toBe(`${ledger.url}/`);
    await here.stop();
  });

  it('an aggregate: its hosts as a heat map that can be filtered and ordered, the chart, moves and decisions', async () => {
    await open(view());
    expect(await text('State')).toContain('Moving · cpu 3.50× · 2 moves in flight, 1 of them under way');
    await region('Hosts')
      .getByRole('group', { name: /^cpu: 1 of 12 hosts above the band/ })
      .waitFor();
    expect(await region('Hosts').locator('rect.vm.moves').count()).toBe(2);
    expect(await region('Hosts').locator('rect.ghost').count()).toBe(2);
    // Each of them is named where it leaves and where it would come.
    expect(await text('Hosts')).toMatch(/2 VMs leave host-1 for host-4 and host-5 /);
    expect((await region('Hosts').locator('text.change').allTextContents()).map((one) => one.split(' ')[0])).toEqual(
      expect.arrayContaining(['−', '−', '+', '+']),
    );
    expect(await unreadable(page)).toEqual([]);
    expect(await text('Hosts')).toMatch(
      /cpu: the share of the host that is in use.* takes no VM .* The band, \d+ to \d+ % \(\d+ to \d+ % after the plan\), is as wide .* 1\.00× or less/,
    );
    await region('Hosts').getByRole('button', { name: 'with the plan' }).click();
    await region('Hosts').locator('rect.ghost').first().waitFor({ state: 'detached' });
    await region('Hosts').getByRole('button', { name: 'table' }).click();
    const cell = region('Hosts').locator('tr', { hasText: 'host-1' }).locator('td.cell').first();
    expect([await seen(cell), await cell.getAttribute('title')]).toEqual(['70.0 %', 'far above the band']);
    await region('Hosts').getByLabel('Order').selectOption({ label: 'by cpu' });
    expect(await seen(region('Hosts').locator('tbody tr th').first())).toBe('host-1');
    await region('Hosts').getByLabel('Filter').fill('host-1');
    await expect.poll(() => region('Hosts').locator('tbody tr').count(), { timeout: LIMIT_MS }).toBe(3);
    expect(await text('Hosts')).toContain('3 of 12 hosts');
    await page.locator('.uplot canvas').waitFor();
    expect(await text('Hosts')).toMatch(/measured \d+ (s|min) ago/);
    expect(await text('What happened')).toMatch(
      /Plan of 2 moves released: \d\.\d\d× → .*, as cpu was above its threshold for 1 cycle/,
    );
  });

  it('a recorded moment: the slider, single steps and playback change the hosts and the URL', async () => {
    await open(view());
    await region('Hosts').getByRole('button', { name: 'table' }).click();
    const busiest = () =>
      region('Hosts at that moment')
        .locator('tr', { hasText: /host-\d/ })
        .filter({ hasText: '70.0 %' });
    await page.getByRole('button', { name: 'Back' }).click();
    await busiest().filter({ hasText: 'host-5' }).waitFor();
    expect(new URL(page.url()).hash).toContain('?snapshot=');
    // The whole page belongs to that moment: nothing of now is beside it.
    expect(await text('State')).toMatch(/As it was at \d{4}-/);
    // One sentence at the top says what happened then. No plan of its future is drawn.
    expect(await seen(page.locator('.story'))).toMatch(
      /^At \d\d:\d\d:\d\d nothing moved\. The next plan \(2 moves\) was released 20 s later\. cpu was 3\.50× its threshold\. No plan was made: /,
    );
    expect(await text('State')).not.toContain('The plan of');
    for (const name of ['What happened', 'Next', 'Moves in flight']) expect(await region(name).count()).toBe(0);
    await region('Around then').getByText('decides from now on').waitFor();
    expect(await text('Around then')).toMatch(/^AROUND THEN After it .* Up to then .* decides from now on/i);
    expect(await seen(page.locator('#freshness'))).toBe('A past moment');
    // Its hosts are shown at that moment too, with the VMs that they had.
    await region('Hosts at that moment').getByRole('link', { name: 'host-5', exact: true }).click();
    await region('At that moment').getByText('Free vCPUs').waitFor();
    expect(await text('VMs by weight')).toContain('shop-2');
    expect(await seen(page.locator('.story'))).toContain('nothing moved. The next plan (2 moves)');
    await page.getByRole('link', { name: 'Show it now' }).click();
    await region('VMs by weight').getByText('No VM.').waitFor();
    await page.goBack();
    await page.getByRole('link', { name: 'all hosts at that moment' }).click();
    await page.getByRole('button', { name: 'table' }).click();
    await busiest().filter({ hasText: 'host-5' }).waitFor();
    // The URL alone shows the same moment.
    await page.reload();
    await page.getByRole('button', { name: 'table' }).click();
    await busiest().filter({ hasText: 'host-5' }).waitFor();
    await page.getByRole('button', { name: 'Play' }).click();
    await busiest().filter({ hasText: 'host-1' }).waitFor();
    await page.getByRole('button', { name: 'Play' }).waitFor();
    expect(await text('Time')).toContain('planned 2 moves');
    await page.locator('.story', { hasText: 'a plan of 2 moves was released. Nothing moved yet.' }).waitFor();
    await page.getByRole('link', { name: /^The plan of \d\d:\d\d:\d\d$/ }).waitFor();
    await page.getByRole('button', { name: 'Now' }).click();
    await region('Hosts').waitFor();
    // A time that a person types, from the keyboard, is a moment too; what is no time is refused.
    await page.keyboard.press('t');
    await page.locator('[data-key=Time]:focus').waitFor();
    await page.keyboard.type('03:99');
    await page.keyboard.press('Enter');
    await page.locator('input:invalid').waitFor();
    await page.getByLabel('Go to', { exact: true }).fill('6h');
    await page.keyboard.press('Enter');
    await busiest().filter({ hasText: 'host-5' }).waitFor();
    expect(await text('Time')).toMatch(/The oldest cycle that is kept is shown: [\d :-]+ is before it\./);
    await page.getByRole('button', { name: 'Now' }).click();
    await region('Hosts').waitFor();
    await palette(page, 'yesterday');
    await page.getByRole('option', { name: /at \d{4}-.* moment$/ }).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await busiest().filter({ hasText: 'host-5' }).waitFor();
  });

  it('a recorded moment while the thumb is dragged, and leaves the thumb where it is held', async () => {
    await open(view());
    const thumb = page.getByRole('slider', { name: 'Recorded cycle' });
    // The parts above it grow no more.
    await complete();
    await thumb.hover();
    const box = await thumb.boundingBox();
    if (box === null) throw new Error('there is no slider');
    const chart = await region('Time').locator('.u-over').boundingBox();
    // The thumb of the oldest cycle, 16 pixels wide, stands under the beginning of the chart.
    expect(Math.abs(box.x + 8 - (chart?.x ?? 0))).toBeLessThan(2);
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width - 8, y);
    await page.mouse.down();
    await page.mouse.move(box.x + 4, y, { steps: 4 });
    // The page follows before the thumb is released.
    await region('Hosts at that moment').waitFor();
    expect(await thumb.inputValue()).toBe('0');
    const read = page.waitForResponse((response) => response.url().includes('/imbalance'));
    log.pass(1).decided('none', []);
    await bed.append(log.events.splice(0));
    await read;
    expect(await thumb.inputValue()).toBe('0');
    await page.mouse.up();
  });

  it('a VM at a recorded moment: where it was, its values and why it stayed then', async () => {
    await open(view('/vms/uuid-1'));
    expect(await text('Now')).toMatch(/Host host-1 .* cpu 50\.0 % of its host/);
    await page.getByRole('button', { name: 'Back' }).click();
    await region('At that moment').getByText('host-5').waitFor();
    expect(await text('At that moment')).toMatch(/Host host-5 .* cpu 50\.0 % of its host memory 10\.0 % of its host/);
    // Nothing of now is shown as if it were of that moment, and the URL alone shows the same.
    for (const name of ['What holds it', 'Moves in flight']) expect(await region(name).count()).toBe(0);
    await page.reload();
    await region('At that moment').getByRole('link', { name: 'host-5' }).click();
    await page.getByRole('heading', { level: 1, name: 'host-5' }).waitFor();
    await region('VMs by weight').getByRole('link', { name: 'shop <img' }).click();
    await region('At that moment').getByText('host-5').waitFor();
    await page.getByRole('button', { name: 'Forward' }).click();
    await region('At that moment').getByText('host-1').waitFor();
    await region('Why it moved or stayed').getByText('By the decision of').waitFor();
    await page.getByRole('button', { name: 'Now' }).click();
    await region('What holds it').waitFor();
  });

  it('a plan: its steps with their reasons in figures, and the hosts before and after it', async () => {
    await open(`#/plans/${encodeURIComponent(planId)}`);
    expect(await unfolded('Summary')).toMatch(/0\.300 → 0\.100 No plan of 10 moves can be below 0\.050.*80 %/);
    expect(await text('Steps')).toMatch(
      /1 name-of-uuid-1 id host-1 → host-4 24 GiB about 4 min cpu 3\.10× highest: host-1 lowers the combined imbalance gain 0\.02/,
    );
    expect(await text('Steps')).toMatch(/step 1 waiting/);
    expect(await seen(page.locator('.figures'))).toContain('cpu 2.70× still above the threshold');
    expect(await seen(page.locator('.figures'))).toMatch(
      /48 GiB copied \(8 GiB of it memory\) about \d+ min for the 2 moves left \(moves off one host follow each other; assumed at .*0 of 2 completed, 1 under way/,
    );
    expect(await region('Hosts before and after').locator('g.ribbon').count()).toBe(2);
    await region('Hosts before and after').getByRole('button', { name: 'table' }).click();
    expect(await text('Hosts before and after')).toMatch(/host-1 2 → 0 70\.0 % 54\.0 %/);
    expect(await text('Refused')).toBe('Not chosen: 3 candidates refused');
    expect(await unfolded('Refused')).toContain('host-full 3');
    expect(await unfolded('Events')).toContain('attempt 1: name-of-uuid-1 from host-1 to host-4 started');
  });

  it('a plan that has ended: each step says how it ended, and its ribbon too', async () => {
    log.pass(1).completed({ task: `${planId}-s1` });
    log.pass(1).started({ task: `${planId}-s2` });
    log.pass(1).completed({ task: `${planId}-s2` });
    await bed.append(log.events.splice(0));
    await open(`#/plans/${encodeURIComponent(planId)}`);
    await expect.poll(() => text('Steps'), { timeout: LIMIT_MS }).toMatch(/gain 0\.02 completed .* step 1 completed/);
    expect(await region('Hosts before and after').locator('g.ribbon.done').count()).toBe(2);
  });

  it('a plan that waits: without a step, its hosts after it are others at once; the VM of a step says where it would go', async () => {
    log.about('idle').configured({ approval: 'manual' });
    const waiting = log.about('idle').decided('proposed', [
      { serverId: 'uuid-1', from: 'host-1', to: 'host-4' },
      { serverId: 'uuid-2', from: 'host-1', to: 'host-5', dependsOn: [1] },
    ]);
    await bed.observed(waiting, 'idle', log.nowMs, sketch(12, 'host-1'));
    await bed.append(log.events.splice(0));
    await open(`#/plans/${encodeURIComponent(waiting)}`);
    await page.getByRole('heading', { level: 1, name: /^2 moves take idle from / }).waitFor();
    await page.getByRole('checkbox', { name: 'Step 2: name-of-uuid-2' }).uncheck();
    await page.getByRole('heading', { level: 1, name: /^1 move takes idle from / }).waitFor();
    // Nobody can log in here: the page says so, and what to write in a shell.
    expect(await seen(page.locator('.by-hand'))).toBe(
      `kronos approve ${waiting} --step 1 kronos reject ${waiting} In a shell: this console has no log-in ([console] acting).`,
    );
    expect(await region('Hosts before and after').locator('g.ribbon').count()).toBe(1);
    // Step 2 waits for step 1: without that, it is left out too.
    await page.getByRole('checkbox', { name: 'Step 2: name-of-uuid-2' }).check();
    await page.getByRole('checkbox', { name: 'Step 1: name-of-uuid-1' }).uncheck();
    await page.getByRole('heading', { level: 1, name: /^0 moves take idle from / }).waitFor();
    await open('#/aggregates/idle/vms/uuid-1');
    await region('Why it moves or stays').getByText('It moves to host-4 when the plan of').waitFor();
  });

  it('a host with its VMs by weight, and a VM with what holds it; markup in names is text', async () => {
    await open(view('/hosts/host-1'));
    expect(await text('Now')).toContain('cpu 70.0 % (far above the band');
    expect(await seen(page.locator('.planned'))).toMatch(
      /2 VMs leave it: name-of-uuid-1 → host-4, name-of-uuid-2 → host-5\. The plan that runs/,
    );
    expect(await text('VMs by weight')).toMatch(/shop <img src=x onerror=alert\(1\)> id ACTIVE.*shop-2/);
    await region('VMs by weight').getByRole('link', { name: 'shop <img' }).click();
    await page.getByRole('heading', { level: 1, name: 'shop <img src=x onerror=alert(1)>' }).waitFor();
    await shown();
    expect(await text('Now')).toContain('Host host-1');
    expect(await text('What holds it')).toContain('Quarantine none');
    expect(await text('Recent events')).toContain('attempt 1: name-of-uuid-1 from host-1 to host-4 started');
    expect(await text('Moves over time')).toMatch(/name-of-uuid-1 id host-1 → host-4 .*under way/);
    expect(await text('Moves over time')).not.toContain('uuid-2');
    log.about(ALL).quarantined('uuid-1', -1, 'grace');
    await bed.append(log.events.splice(0));
    // Without a reload: the event is streamed.
    await region('What holds it').getByText('until it is released').waitFor();
  });
});

describe('the console shows in spite of a stream of events', () => {
  it('what takes long to answer', async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    await page.route('**/values', async (route) => {
      asked.resolve();
      await answer.promise;
      await route.continue();
    });
    await open(view('/hosts/host-1'));
    await asked.promise;
    for (const act of ['paused', 'resumed'] as const) {
      const read = page.waitForResponse((response) => response.url().endsWith('/hosts/host-1'));
      log.pass(1)[act]();
      await bed.append(log.events.splice(0));
      await read;
    }
    answer.resolve();
    await region('Values over time').getByText('2 snapshots since').waitFor();
  });
});

describe('the console finds', () => {
  it('a VM, a host, a plan and a task by name or id, from any view and by keyboard', async () => {
    await open(view('/hosts/host-1'));
    const find = async (query: string) => {
      await page.keyboard.press('/');
      await page.keyboard.type(query);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1, name: `Search: ${query}` }).waitFor();
      await shown();
      return await text('Results');
    };
    expect(await find('SHOP')).toMatch(/2 results.*shop <img src=x onerror=alert\(1\)> VM.*host-1 uuid-1 shop-2 VM/);
    expect(await find('host-1')).toMatch(/3 results.*host-1 Host.*host-10 Host.*host-11 Host/);
    expect(await find(planId)).toMatch(/3 results.* Plan .*name-of-uuid-1 Task .*host-4/);
    expect(await find('nothing like it')).toContain('Nothing has a name or an id that contains “nothing like it”.');
    expect(await find('uuid-3')).toContain('1 result.');
    // The URL alone shows the same, and a result leads on.
    await page.reload();
    await region('Results').getByRole('link', { name: 'db-1' }).click();
    await page.getByRole('heading', { level: 1, name: 'db-1' }).waitFor();
    expect(await page.getByRole('combobox').first().inputValue()).toBe('');
  });
});

describe('the console leads', () => {
  it('anywhere from its palette, by keys, and says which keys there are', async () => {
    await open(view());
    // A search that fails is tried again: nobody types their text twice.
    await page.route('**/search?*q=shop-2', (route) => route.abort(), { times: 1 });
    await palette(page, 'shop-2');
    const found = page.getByRole('option', { name: /shop-2/ });
    await found.waitFor();
    await page.keyboard.press('ArrowDown');
    expect(await found.getAttribute('aria-selected')).toBe('true');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'shop-2' }).waitFor();
    await palette(page, 'what if idle');
    await page.getByRole('option', { name: 'What if: idle' }).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'What if: idle' }).waitFor();
    await open();
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByText('one cycle back and forward').waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.keyboard.press('j');
    await page.locator('a:focus', { hasText: NAME }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: NAME }).waitFor();
    await shown();
    await page.keyboard.press('w');
    await page.getByRole('heading', { level: 1, name: `What if: ${NAME}` }).waitFor();
  });

  it('from each mark of the time bar to why it is there; those that are too near to be hit are one with their number', async () => {
    log.pass(1).paused();
    await bed.append(log.events.splice(0));
    await page.setViewportSize({ width: 320, height: 900 });
    await open(view('?time=all'));
    const several = region('Time').locator('button.mark', { hasText: /^3$/ });
    await several.waitFor();
    expect((await several.boundingBox())?.width).toBeGreaterThanOrEqual(24);
    await several.click();
    const marks = region('Time').locator('.marks a');
    await expect.poll(() => marks.count(), { timeout: LIMIT_MS }).toBe(3);
    // The part that is shown is in the address, and the whole is one click away.
    expect(new URL(page.url()).hash).toMatch(/time=\d+-\d+/);
    await page.reload();
    await expect.poll(() => marks.count(), { timeout: LIMIT_MS }).toBe(3);
    const [texts, links] = [
      await marks.evaluateAll((all) => all.map((a) => a.getAttribute('title') ?? '')),
      await marks.evaluateAll((all) => all.map((a) => a.getAttribute('href') ?? '')),
    ];
    expect(texts.toSorted()).toEqual([
      expect.stringMatching(/^Plan of 2 moves: /),
      'name-of-uuid-1: host-1 to host-4',
      expect.stringContaining('paused'),
    ]);
    await page.keyboard.press('0');
    await expect.poll(() => new URL(page.url()).hash, { timeout: LIMIT_MS }).toMatch(/time=all/);
    for (const [text, href] of texts.map((one, i) => [one, links[i] ?? ''] as const)) {
      await open(href);
      expect([text, await page.locator('[data-state=error]').count()]).toEqual([text, 0]);
    }
  });

  it('over the whole journey of a VM', async () => {
    log.pass(1).completed({ task: `${planId}-s1` });
    await bed.append(log.events.splice(0));
    await open(view('/vms/uuid-1'));
    const journey = page.getByRole('group', { name: '1 move over 2 hosts' });
    await journey.waitFor();
    expect(await journey.locator('rect.stay').count()).toBe(2);
    await journey.getByRole('link', { name: 'host-4' }).click();
    await page.getByRole('heading', { level: 1, name: 'host-4' }).waitFor();
    await region('Among the hosts')
      .getByRole('img', { name: /^cpu: / })
      .first()
      .waitFor();
  });
});

describe('the console says why', () => {
  it('a VM stays where it is, by the last decision, and where it may not go', async () => {
    await open(view('/vms/uuid-3'));
    const why = region('Why it moves or stays');
    await why.getByText('It stays').waitFor();
    expect(await seen(why)).toMatch(/host-3 .* (not enabled|disabled)/i);
    expect(await text('Hosts where it ran')).toContain('No move of it has ended recently.');
  });

  it('a VM, an aggregate and a host are in quarantine or cooldown, and until when', async () => {
    log.pass(1).completed({ task: `${planId}-s1` });
    log.quarantined('uuid-3', 3600, 'grace');
    log.about(ALL).quarantined('uuid-2', -1, 'grace');
    log.about('idle').paused();
    await bed.append(log.events.splice(0));
    await open();
    await page.getByRole('link', { name: 'Held', exact: true }).click();
    await region('Quarantine').getByText('grace').first().waitFor();
    // No plan has named this one: its name is that of the newest snapshot.
    expect(await text('Quarantine')).toMatch(/db-1 id .* in 60 min/);
    expect(await text('Quarantine')).toMatch(/name-of-uuid-2 id .* it is released/);
    expect(await text('Cooldown of VMs')).toMatch(/2 name-of-uuid-1 id name-of-uuid-2 id the last in \d+ (min|h|d)/);
    expect(await text('Cooldown of aggregates')).toContain('a plan was released');
    expect(await text('Cooldown of VMs')).toContain('The moves of a plan that is released go on.');
    expect(await text('Paused aggregates')).toMatch(/idle ada .* it is resumed/);
    expect(await seen(page.locator('main'))).toContain('No host is out because of failed moves.');
    await region('Quarantine').getByRole('link', { name: 'name-of-uuid-2' }).first().click();
    await page.getByRole('heading', { level: 1, name: 'shop-2' }).waitFor();
    await open(view());
    expect(await text('What happened')).toContain('quarantined db-1 for 1 h by grace');
    await region('What happened').getByRole('button', { name: 'people' }).click();
    await region('What happened').getByText('Plan of 2 moves').waitFor({ state: 'detached' });
    expect(await text('What happened')).toContain('quarantined db-1 for 1 h by grace');
  });

  it('a plan that nobody hands to the executors: its aggregate does not look as if it moved', async () => {
    log.about('idle').configured({ approval: 'manual', approvalTtlSeconds: 1 });
    const expired = log.about('idle').decided('proposed', [{ serverId: 'uuid-1', from: 'host-1', to: 'host-4' }]);
    await bed.append(log.events.splice(0));
    const later = await bed.start({ scope: [NAME] }, () => Date.now() + 300_000);
    await page.goto(later.url);
    // The cause explains that the tasks are not on the queue: the planner has sent no heartbeat here.
    await region('Aggregates')
      .locator('tr', { hasText: NAME })
      .getByText(/^alarm: /)
      .waitFor();
    await region('Aggregates').getByRole('link', { name: NAME }).click();
    await region('Alarms').locator('li').first().waitFor();
    expect(await axe(page)).toEqual([]);
    await page.goto(`${later.url}/#/plans/${encodeURIComponent(planId)}`);
    await page.getByText('released · not handed to the executors yet').waitFor();
    // Of a plan that has expired, the log may not have the end yet: nobody is asked to approve it.
    await page.goto(`${later.url}/#/plans/${encodeURIComponent(expired)}`);
    await page.getByText(/^expired \d+ (s|min) ago: nothing moves$/).waitFor();
    expect(await region('Steps').getByRole('checkbox').count()).toBe(0);
    expect(await page.locator('.by-hand').count()).toBe(0);
    await later.stop();
  });

  it('an alarm matters: its section of the runbook', async () => {
    await open();
    await region('Needs you').getByRole('link', { name: 'Runbook' }).first().click();
    await region('Runbook').waitFor();
    expect((await text('Runbook')).length).toBeGreaterThan(40);
    await page.goto(`${ledger.url}/#/runbook/none`);
    await page.locator('[data-state=error]', { hasText: 'no section "none"' }).waitFor();
  });
});

describe('the console looks ahead', () => {
  it('in an aggregate: what happens next; and its moves over time, and how each ended', async () => {
    log.pass(30).completed({ task: `${planId}-s1` });
    await bed.append(log.events.splice(0));
    await open(view());
    expect(await text('Next')).toMatch(/name-of-uuid-2 moves to host-5\..* The cooldown ends/);
    expect(await text('Moves over time')).toMatch(/name-of-uuid-1 id host-1 → host-4 .* 30 s completed/);
    const bar = region('Moves over time').locator('rect.over');
    expect(Number(await bar.getAttribute('width'))).toBeGreaterThan(0);
    log.pass(1).paused();
    await bed.append(log.events.splice(0));
    await region('Next').getByText('Nothing is planned until somebody resumes it').waitFor();
  });

  it('in a plan: which step waits for which, and how far it is from the bound', async () => {
    await open(`#/plans/${encodeURIComponent(planId)}`);
    await page.getByRole('img', { name: '1 step of 2 wait for others' }).waitFor();
    expect(await text('Dependencies')).toMatch(/1 name-of-uuid-1 2 name-of-uuid-2/);
    expect(await region('Dependencies').locator('path.edge').count()).toBe(1);
    const [after, least] = await Promise.all(
      ['width', 'x'].map((name, i) =>
        region('Summary')
          .locator(i === 0 ? 'rect.after' : 'rect.least')
          .getAttribute(name),
      ),
    );
    expect(Number(least)).toBeLessThan(Number(after));
  });

  it('back at a host: its values over time', async () => {
    await open(view('/hosts/host-1'));
    await region('Values over time').getByText('2 snapshots since').waitFor();
    expect(await text('Values over time')).toMatch(/cpu 0\.0 % 0\.0 % 70\.0 % 70\.0 %/);
    await region('Values over time').locator('.uplot canvas').waitFor();
    await open(view('/hosts/none'));
    await region('Values over time').getByText('No policy has a value of this host.').waitFor();
  });

  it('at a host: what a drain would do, which drains nothing', async () => {
    const sequence = async () => ((await ledger.get('/api/v1')).body as { sequence: number }).sequence;
    const before = await sequence();
    await open(view('/hosts/host-2'));
    await region('Drain').getByRole('button', { name: 'Show what a drain would do' }).click();
    await region('Drain')
      .getByText(/VMs? would leave,/)
      .waitFor();
    expect(await text('Drain')).toMatch(/1 VM would leave.* db-1 id host-\d/);
    expect(await sequence()).toBe(before);
    log.pass(1).paused();
    await bed.append(log.events.splice(0));
    await region('Drain').getByText('Nothing would be done:').waitFor();
  });

  it('at a moment with other options, decided in the browser: nothing changed gives the digest of the ledger', async () => {
    log.about('idle').configured({ searchWorkLimit: 20_000 });
    await bed.append(log.events.splice(0));
    const { data } = await bed.decided(
      await bed.observed('idle-1', 'idle', log.nowMs, sketch(12, 'idle-host-1', 'idle-')),
    );
    expect(data.plan?.steps.length).toBeGreaterThan(0);
    await open('#/aggregates/idle/what-if');
    await region('Plan').getByText('It has the digest of the recorded decision.').waitFor();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    await page.getByLabel('cpu: Threshold').fill('0.95');
    await page.getByLabel('memory: Threshold').fill('0.95');
    await page.keyboard.press('Tab');
    await region('Plan').getByText('No plan in place of').waitFor();
    // Only what the moment is made of is read again: nothing is computed by the ledger.
    expect(asked.filter((url) => /what-if\?|why|decision/.test(url))).toEqual([]);
    // Its address alone shows the same, and leads back.
    await page.reload();
    await region('Plan').getByText('No plan in place of').waitFor();
    expect(await page.getByLabel('cpu: Threshold').inputValue()).toBe('0.95');
    await page.getByRole('button', { name: 'Options in force' }).click();
    await region('Plan').getByText('Nothing is changed.').waitFor();
    expect(await region('Plan').getByRole('img').count()).toBe(4);
    // Each step says what it does to its host.
    await open(`#/plans/${encodeURIComponent(data.plan?.id ?? '')}`);
    expect(await text('Steps')).toMatch(
      /\d\.\d\d× highest: idle-host-\d+ lowers (cpu|memory) of idle-host-1 from [\d.]+ % to [\d.]+ %/,
    );
  });

  it('with other options, also while the ledger computes another answer', async () => {
    let busy = 0;
    await page.route('**/what-if?*', async (route) => {
      busy++;
      if (busy > 2) return await route.continue();
      await route.fulfill({ status: 503, headers: { 'retry-after': '1' }, json: { error: 'too many requests' } });
    });
    await open(view(`/what-if?since=${encodeURIComponent(new Date(log.nowMs - 600_000).toISOString())}`));
    await region('Answer').getByText('Nothing was moved.').waitFor();
  });

  it('with other options: what would have happened, beside what did; a wrong option is named', async () => {
    await open(view());
    await region('Hosts').getByRole('link', { name: 'what if' }).click();
    await region('Recorded range').getByLabel('Changed options').fill('engine.cooldown=0');
    await region('Recorded range').getByRole('button', { name: 'Decide again' }).click();
    await region('Answer').getByText('Nothing was moved.').waitFor();
    expect(await text('Answer')).toMatch(
      /2 snapshots from .* with engine\.cooldown=0\..*Moves 0 \d+ Mean imbalance \d/,
    );
    await region('Answer').locator('.uplot canvas').waitFor();
    await region('Recorded range').getByLabel('Changed options').fill('engine.coldown=0');
    await region('Recorded range').getByRole('button', { name: 'Decide again' }).click();
    await region('Answer').getByText('Did you mean engine.cooldown?').waitFor();
  });
});

describe('the console says', () => {
  it('times in a reason as it says all others', async () => {
    const reason = { code: 'cooldown', text: 'cooling down until 2026-01-02T03:04:05.678Z' };
    log.pass(1).decided('none', [], { reason, outcome: 'gated' });
    await bed.append(log.events.splice(0));
    await open(view());
    await page.getByRole('button', { name: 'Local time' }).click();
    expect(await text('What happened')).toContain('cooling down until 2026-01-02 03:04:05');
  });

  it('that there is nothing yet', async () => {
    await open('#/aggregates/idle');
    expect(await text('State')).toContain('Nothing decided yet');
    expect(await text('Time')).toContain('No decision yet.');
    await region('Hosts').locator('[data-state=missing]').waitFor();
  });

  it('that it is reading, and then that there is no such thing', async () => {
    const answer = Promise.withResolvers<void>();
    await page.route(/\/api\/v1\/.*none/, async (route) => {
      await answer.promise;
      await route.continue();
    });
    await page.goto(`${ledger.url}/#/aggregates/none`);
    await page.locator('[data-state=loading]').waitFor();
    answer.resolve();
    await page.locator('[data-state=error]', { hasText: 'no aggregate "none"' }).waitFor();
    await page.goto(`${ledger.url}/#/nowhere`);
    await page.locator('[data-state=error]', { hasText: 'no view #/nowhere' }).waitFor();
  });

  it('that what it shows is stale, and that it is up to date again', async () => {
    await open();
    await page.route('**/api/v1/fleet', (route) => route.abort());
    log.pass(1).paused();
    await bed.append(log.events.splice(0));
    await page.locator('#freshness.stale', { hasText: 'Stale' }).waitFor();
    expect(await text('Aggregates')).toContain('Moving');
    await page.unroute('**/api/v1/fleet');
    log.pass(1).resumed();
    await bed.append(log.events.splice(0));
    await shown();
  });

  it('that the ledger hangs, though nothing is refused', async () => {
    await open();
    // Neither an answer nor an error: as a stopped process, or a network that swallows packets.
    await page.route('**/api/v1/fleet', () => new Promise(() => undefined));
    log.pass(1).paused();
    await bed.append(log.events.splice(0));
    await page.locator('#freshness.stale', { hasText: 'the ledger has not answered yet' }).waitFor();
    await page.locator('#freshness.stale', { hasText: 'does not answer' }).waitFor();
  });

  it('that a snapshot is no longer kept, beside what the log still has', async () => {
    await bed.forgetSnapshots();
    await open(`#/plans/${encodeURIComponent(planId)}`);
    await region('Hosts before and after').locator('[data-state=gone]').waitFor();
    expect(await text('Steps')).toContain('name-of-uuid-1');
    await open(view(`?snapshot=${encodeURIComponent(planId)}`));
    await region('Hosts at that moment').locator('[data-state=gone]').waitFor();
    expect(await text('Time')).toContain('planned 2 moves');
  });
});

describe('the console is for everyone', () => {
  it.each([
    ['light', 1280],
    ['dark', 1280],
    ['light', 320],
    ['dark', 3840],
  ] as const)(
    'without violations of WCAG in %s at %i pixels, and without sideways scrolling',
    async (scheme, width) => {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 900 });
      for (const hash of [
        '',
        view(),
        `#/plans/${encodeURIComponent(planId)}`,
        view('/hosts/host-1'),
        view(`/hosts/host-5?snapshot=${encodeURIComponent(planId)}`),
        view('/vms/uuid-1'),
        view(`/vms/uuid-1?snapshot=${encodeURIComponent(planId)}`),
        view(`/what-if?since=${encodeURIComponent(new Date(log.nowMs - 600_000).toISOString())}`),
        view('/drains'),
        view('/drains?host=host-1&host=host-2'),
        '#/plans',
        '#/moves',
        '#/held',
        '#/search?q=host',
        '#/runbook/nats-refused',
      ]) {
        await open(hash);
        await complete();
        expect(await axe(page), hash).toEqual([]);
        const overflow = await page.evaluate(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        );
        expect([hash, overflow]).toEqual([hash, 0]);
      }
    },
  );

  it('on a phone, where a long text stays readable beside many columns', async () => {
    await page.setViewportSize({ width: 320, height: 700 });
    await open(view());
    const long = region('What happened').locator('td', { hasText: 'Plan of 2 moves' });
    expect((await long.boundingBox())?.width).toBeGreaterThan(150);
    const row = await long.locator('xpath=..').boundingBox();
    expect(row?.height).toBeLessThan(120);
    // A move is two lines, and each small picture has its name.
    const move = await region('Moves in flight').locator('tbody tr').first().boundingBox();
    expect(move?.height).toBeLessThan(90);
    await open();
    const title = region('Aggregates').locator('td.picture').first();
    expect(
      await title.evaluate((cell) => cell.ownerDocument.defaultView?.getComputedStyle(cell, '::before').content),
    ).toBe('"cpu"');
  });

  it('by keyboard alone, with the focus kept when the view is read again', async () => {
    await open(view());
    await region('Hosts').getByRole('button', { name: 'table' }).click();
    const filter = region('Hosts').getByLabel('Filter');
    await filter.focus();
    await page.keyboard.type('host-1');
    log.pass(1).completed({ task: `${planId}-s1` });
    await bed.append(log.events.splice(0));
    await region('What happened').getByText('completed').first().waitFor();
    expect(await filter.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true);
    expect(await filter.inputValue()).toBe('host-1');
    // A row that others push down keeps the focus, and what Enter follows.
    const plan = region('What happened').getByRole('link', { name: 'Plan of 2 moves' });
    await plan.focus();
    log.pass(1).paused();
    await bed.append(log.events.splice(0));
    await region('What happened').getByText('paused').first().waitFor();
    expect(await plan.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true);
    await page.getByRole('slider', { name: 'Recorded cycle' }).focus();
    await page.keyboard.press('ArrowLeft');
    await region('Hosts at that moment').waitFor();
    const zone = page.getByRole('button', { name: 'Local time' });
    await zone.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'UTC' }).waitFor();
    expect(await text('Time')).toMatch(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/);
  });
});

it('the console uses only calls that the OpenAPI document describes', async () => {
  const called = new Set<string>();
  page.on('request', (request) => called.add(new URL(request.url()).pathname));
  for (const hash of [
    '',
    view(),
    view(`?snapshot=${encodeURIComponent(planId)}`),
    view('/hosts/host-1'),
    view('/vms/uuid-1'),
    view(`/what-if?since=${encodeURIComponent(new Date(log.nowMs - 600_000).toISOString())}`),
    view('/drains?host=host-1'),
    '#/plans',
    '#/moves',
    '#/held',
    '#/search?q=host',
    '#/runbook/nats-refused',
  ]) {
    await open(hash);
    await complete();
  }
  await open(`#/plans/${encodeURIComponent(planId)}`);
  const { paths } = (await ledger.get('/api/v1/openapi.json')).body as { paths: Record<string, unknown> };
  const known = Object.keys(paths).map((path) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`));
  const calls = [...called].filter((path) => path.startsWith('/api/'));
  expect(calls.length).toBeGreaterThan(8);
  expect(calls.filter((path) => !known.some((pattern) => pattern.test(path)))).toEqual([]);
});
