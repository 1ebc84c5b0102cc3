import { cycleSnapshotId } from '@kronos/contracts';
import { ledgerBed } from '@kronos/ledger/testing';
import type { Sketch } from '@kronos/placement/testing';
import { testLog } from '@kronos/projections/testing';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { browserOrNull, LIMIT_MS, READ, seen, unreadable } from './page.ts';
import { compare, type FixedContext, fixedContext, judge } from './pictures.ts';

const NAME = 'general';
const HOSTS = Array.from({ length: 8 }, (_, n) => `compute-0${n + 1}`);

const sizes = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 800 } } as const;
const schemes = ['light', 'dark'] as const;

let browser: Browser | null;
let bed: Awaited<ReturnType<typeof ledgerBed>>;
let url: string;
let planId: string;
/** The plan that waits. */
let waitingId: string;
let first: string;
/** The VM that moves. */
let moving: string;
let page: Page;
/** The ledger's clock: after everything that is stored, so that no clock seems to be behind. */
let nowMs: number;
let shownAs: FixedContext['shownAs'];

/** Room on each host, and what people call a VM of that size. */
const free = { VCPU: 24, MEMORY_MB: 131_072 };
const small = { flavor: 'm1.small' };
const medium = { flavor: 'm1.medium' };

/**
 * Two VMs on each host but the last, which is disabled; three more are on compute-02, or where they have moved to: `cpu` are their loads.
 * Of plans with two moves every one is tried, so that no change of the search changes what the pictures show.
 */
const sketch = (
  cpu: readonly number[],
  { moved = {}, draining = [] }: { moved?: Readonly<Record<string, string>>; draining?: readonly string[] } = {},
): Sketch => ({
  policies: {
    cpu: { threshold: 0.2, maxMigrationsPerCycle: 2, minSustainedCycles: 2 },
    memory: { threshold: 0.1, maxMigrationsPerCycle: 2, minSustainedCycles: 2 },
  },
  hosts: Object.fromEntries(HOSTS.map((host, n) => [host, { free, disabled: n === 7 || draining.includes(host) }])),
  vms: Object.fromEntries([
    ...HOSTS.slice(0, 7).flatMap((host, n) =>
      ['web', 'db'].map((kind, k) => [
        `uuid-${kind}-${n}`,
        { host, w: { cpu: 0.05 + 0.012 * n, memory: 0.1 + 0.05 * k }, set: { name: `${kind}-${n}`, ...small } },
      ]),
    ),
    ...cpu.map((own, k) => [
      `uuid-${k + 1}`,
      {
        host: moved[`uuid-${k + 1}`] ?? 'compute-02',
        w: { cpu: own, memory: (0.5 + 0.01 * k) * own },
        vcpus: 2,
        ramMb: 4096,
        set: { name: `shop-${k + 1}`, ...medium },
      },
    ]),
  ]),
});

/** Stores the events of the log so far and a snapshot of the sketch. Returns the planner's decision about it. */
async function decided(log: ReturnType<typeof testLog>, snapshotId: string, observed: Sketch) {
  await bed.append(log.events.splice(0));
  return await bed.decided(await bed.observed(snapshotId, snapshotId.replace(/-\d+$/, ''), log.nowMs, observed));
}

/** The moves of the plan that waits, by hand: VMs of the two hot hosts, each to a host with room. */
const GPU_MOVES = [3, 4, 5, 6, 7, 3, 4, 8, 9, 5].map((to, n) => ({
  serverId: `uuid-train-${n}`,
  serverName: `train-${n}`,
  from: `gpu-0${(n % 2) + 1}`,
  to: `gpu-0${to}`,
  ramMb: 4096 * ((n % 3) + 1),
  weights: { cpu: { source: 0.05, destination: 0.05 } },
}));

/** Another aggregate, of which the plan waits for a person: no search made it, so that none changes what the pictures show. */
async function waiting(log: ReturnType<typeof testLog>): Promise<string> {
  const snapshotId = cycleSnapshotId('gpu', Math.floor(log.nowMs / 60_000) + 2);
  log.configured({ approval: 'manual' });
  const found = (imbalance: number) => [
    {
      policy: 'cpu',
      imbalance,
      threshold: 0.25,
      participates: true,
      detected: imbalance > 0.25,
      sustainedCycles: 1,
    },
  ];
  const reason = { code: 'not-sustained', text: 'cpu is above its threshold for 1 of 2 cycles' };
  log.decided('none', [], { policies: found(0.36), reason });
  log.pass(20);
  await bed.observed(snapshotId, 'gpu', log.nowMs, {
    policies: { cpu: { threshold: 0.25, maxMigrationsPerCycle: 10, minSustainedCycles: 2 } },
    hosts: Object.fromEntries(
      Array.from({ length: 10 }, (_, n) => [`gpu-${String(n + 1).padStart(2, '0')}`, { free }]),
    ),
    vms: Object.fromEntries([
      ...Array.from({ length: 20 }, (_, n) => [
        `uuid-train-${n}`,
        { host: `gpu-0${(n % 2) + 1}`, w: { cpu: 0.05 }, ramMb: 4096, set: { name: `train-${n}` } },
      ]),
      ...[3, 4, 5, 6, 7, 8, 9, 10].map((n) => [
        `uuid-job-${n}`,
        { host: `gpu-${String(n).padStart(2, '0')}`, w: { cpu: 0.1 + 0.01 * n }, set: { name: `job-${n}` } },
      ]),
    ]),
  });
  const id = log.decided('proposed', GPU_MOVES, { snapshotId, policies: found(0.37), after: found(0.05) });
  await bed.append(log.events.splice(0));
  return id;
}

beforeAll(async () => {
  browser = await browserOrNull();
  if (browser === null) return;
  bed = await ledgerBed();
  // All that the log tells of happened before it was stored. Whole minutes apart, so that cycles have the same numbers.
  const storedMs = Date.now();
  nowMs = storedMs + 90_000;
  const log = testLog(NAME, storedMs - 90_000);
  const cycle = Math.floor(log.nowMs / 60_000);
  log.configured();
  // The load of the shop grows, until a plan is made.
  await decided(log, cycleSnapshotId(NAME, cycle + 1), sketch([0.05, 0.04, 0.04]));
  log.pass(20);
  await decided(log, cycleSnapshotId(NAME, cycle + 2), sketch([0.06, 0.05, 0.05]));
  log.pass(20);
  first = cycleSnapshotId(NAME, cycle + 3);
  await decided(log, first, sketch([0.14, 0.12, 0.1]));
  log.pass(20);
  const loads = [0.16, 0.14, 0.12];
  const { plan } = (await decided(log, cycleSnapshotId(NAME, cycle + 4), sketch(loads))).data;
  if (plan === null) throw new Error('nothing is planned');
  planId = plan.id;
  moving = plan.steps[1]?.serverId ?? '';
  // The planner's event with these steps is stored already. The builder of the log has to know the steps, too: the test gives it the same
  // decision, and drops the event that the builder makes.
  log.decided(
    'released',
    plan.steps.map(({ serverId, serverName, from, to }) => ({ serverId, serverName, from, to })),
    { snapshotId: planId },
  );
  log.events.splice(0);
  log.dispatched(planId, plan.steps.length);
  log.pass(1).started({ task: `${planId}-s1` });
  log.pass(8).completed({ task: `${planId}-s1` }, 7);
  log.pass(1).started({ task: `${planId}-s2` });
  const cells = log.cellsProposed([
    { serverId: 'uuid-web-3', serverName: 'web-3', from: 'compute-04', to: 'compute-n1' },
    { serverId: 'uuid-db-4', serverName: 'db-4', from: 'compute-05', to: 'compute-n1' },
  ]);
  log.pass(1).approved(cells, [1]);
  log.dispatched(cells, 1);
  log.pass(1).started({ task: `${cells}-s1` });
  log.pass(3).verifying({ task: `${cells}-s1` });
  const { data: drain } = log.pass(1).drainAsked('compute-07');
  log.pass(1).hostDisabled(drain.commandId, 'compute-07');
  log.quarantined('uuid-db-3', 86_400, 'grace');
  // The next cycle: what has moved is on its new host, and the drained host is disabled.
  log.pass(3);
  const [done] = plan.steps;
  const moved = done === undefined ? {} : { [done.serverId]: done.to };
  await decided(log, cycleSnapshotId(NAME, cycle + 5), sketch(loads, { moved, draining: ['compute-07'] }));
  await bed.append(log.events.splice(0));
  waitingId = await waiting(testLog('gpu', storedMs - 30_000));
  const scope = [NAME, 'gpu'];
  await bed.reported(scope);
  ({ url } = await bed.start({ scope }, () => nowMs));
  const fixed = await fixedContext(browser, nowMs, storedMs);
  shownAs = fixed.shownAs;
  page = await fixed.context.newPage();
  page.setDefaultTimeout(LIMIT_MS);
  page.setDefaultNavigationTimeout(LIMIT_MS);
});
afterAll(async () => {
  if (browser === null) return;
  // The console may just read: an answer that finds its page closed is no failure.
  await page.context().unrouteAll({ behavior: 'ignoreErrors' });
  await page.context().close();
  await bed.close();
  await browser.close();
});

async function open(hash: string): Promise<void> {
  await page.goto('about:blank');
  await page.goto(`${url}/${shownAs(hash)}`);
  await page.locator('#freshness', { hasText: READ }).waitFor();
  const unfinished = page.locator('[data-state=loading], [data-state=short]');
  await expect.poll(() => unfinished.count(), { timeout: LIMIT_MS }).toBe(0);
}

async function picture(size: { readonly width: number; readonly height: number }, colorScheme: 'light' | 'dark') {
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme });
  // Charts are drawn in the frame after the one that measures them; the font is there before they are.
  await page.evaluate(async () => {
    const { document: shown, requestAnimationFrame: frame } = globalThis as unknown as {
      document: { fonts: { ready: Promise<unknown> } };
      requestAnimationFrame: (then: () => void) => void;
    };
    await shown.fonts.ready;
    for (let i = 0; i < 3; i++) await new Promise<void>((next) => frame(next));
  });
  return await page.screenshot({ fullPage: true, animations: 'disabled' });
}

const view = (path = '') => `#/aggregates/${NAME}${path}`;
const moment = () => `?snapshot=${encodeURIComponent(first)}`;
const views: Readonly<Record<string, () => string>> = {
  fleet: () => '',
  aggregate: () => view(),
  'aggregate-then': () => view(moment()),
  'aggregate-waits': () => '#/aggregates/gpu',
  plan: () => `#/plans/${encodeURIComponent(planId)}`,
  'plan-waits': () => `#/plans/${encodeURIComponent(waitingId)}`,
  host: () => view('/hosts/compute-02'),
  'host-then': () => view(`/hosts/compute-02${moment()}`),
  vm: () => view(`/vms/${moving}`),
  'vm-then': () => view(`/vms/${moving}${moment()}`),
  'vm-cells': () => view('/vms/uuid-web-3'),
  drains: () => view('/drains'),
  'drains-run': () => view('/drains?host=compute-01&host=compute-03&host=compute-05&parallel=2'),
  'what-if': () =>
    view(`/what-if?snapshot=${encodeURIComponent(planId)}&since=${new Date(nowMs - 900_000).toISOString()}`),
  held: () => '#/held',
  search: () => '#/search?q=shop',
  runbook: () => '#/runbook/nats-refused',
};

describe('the console looks as it is kept', () => {
  it.for(Object.keys(views))('%s, in light and dark, on a desktop and on a phone', async (name, { skip }) => {
    if (browser === null) return skip();
    await open(views[name]?.() ?? '');
    const wrong: (string | null)[] = [];
    for (const [size, viewport] of Object.entries(sizes)) {
      for (const scheme of schemes) wrong.push(judge(`${name}-${size}-${scheme}`, await picture(viewport, scheme)));
      wrong.push(...(await unreadable(page)));
    }
    expect(wrong.filter((one) => one !== null)).toEqual([]);
  });

  it('and a plan of 10 moves: who goes where is named at both ends, with all steps, on one screen', async ({
    skip,
  }) => {
    if (browser === null) return skip();
    await open(`#/plans/${encodeURIComponent(waitingId)}`);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.getByText('10 VMs leave gpu-01 and gpu-02 for 7 hosts').waitFor();
    const named = (kind: string) => page.locator(`svg.ribbons text.${kind}`).allTextContents();
    const names = GPU_MOVES.map(({ serverName }) => serverName);
    const sorted = (texts: readonly string[]) => texts.map((text) => text.split(' ')[0]).toSorted();
    expect(sorted(await named('leaves'))).toEqual(names);
    expect(sorted(await named('arrives'))).toEqual(names);
    const hosts = GPU_MOVES.flatMap(({ from, to }) => [from, to]);
    expect((await named('name')).map((text) => text.slice(0, 6)).toSorted()).toEqual([...new Set(hosts)].toSorted());
    expect(await seen(page.locator('.pairs'))).toContain('gpu-01 → gpu-03: train-0, 24 GiB');
    expect(await seen(page.locator('main'))).toContain('gpu-10 takes no part.');
    // Below it, every step is on the first screen.
    const last = await page.locator('section[aria-label=Steps] tbody tr').last().boundingBox();
    expect((last?.y ?? 0) + (last?.height ?? 0)).toBeLessThanOrEqual(900);
    expect(await unreadable(page)).toEqual([]);
    // The check finds a name below a ribbon, and a name on another one.
    await page.evaluate(`{
      const [name, other] = document.querySelectorAll('svg.ribbons text.leaves');
      for (const text of [name, other]) text.setAttribute('x', '600');
      other.setAttribute('y', name.getAttribute('y'));
    }`);
    expect(await unreadable(page)).toEqual(
      expect.arrayContaining([expect.stringContaining(' is on '), expect.stringContaining('a line crosses ')]),
    );
  });

  it('and a section that is missing, or in another colour, is noticed', async ({ skip }) => {
    if (browser === null) return skip();
    await open(view());
    const whole = await picture(sizes.desktop, 'light');
    expect(compare(await picture(sizes.desktop, 'light'), whole)).toBeNull();
    await page.addStyleTag({ content: 'section[aria-label="Hosts"] { background: #cdf; }' });
    expect(compare(await picture(sizes.desktop, 'light'), whole)?.different).toBeGreaterThan(0.01);
    await page.addStyleTag({ content: 'section[aria-label="Hosts"] { display: none; }' });
    expect(compare(await picture(sizes.desktop, 'light'), whole)?.sizes).toMatch(/, kept /);
  });
});
