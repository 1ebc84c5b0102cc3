/**
 * The console at the size it is designed for: what each view costs in bytes and in CPU of the ledger, how soon the first one
 * is shown, how it follows while the time bar is dragged, how soon a what-if answers, and whether the memory of the ledger and of the tab
 * grows while they are used. Prints JSON; exit status 1 where a limit is exceeded.
 *
 *   npm run bench:console -- [aggregates, default 200] [hosts of each, 25] [VMs of each, 500] [moves of each, 50]
 *     [--parts views,memory,browser,open,drag,whatIf] [--seconds 30, of dragging] [--minutes 10, of an open tab]
 *
 * CPU is that of the ledger's process with all its threads; its start ends when it has read the names for the search. Each
 * view is read for the first time once, in the order in which they are printed. The time bar is dragged at an aggregate of 250 hosts and
 * 5,000 VMs with 60 recorded moments; a what-if is asked at one of 100 hosts and 2,000 VMs. The open tab stays at
 * the fleet and at an aggregate in turn, while a decision is stored every 10 s: heaps after a collection, in MB, twelve times. Parts that are left out, and those of the
 * browser where there is no Chromium, are null.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { get } from 'node:http';
import { parseArgs } from 'node:util';
import { ledgerBed } from '@kronos/ledger/testing';
import type { Sketch } from '@kronos/placement/testing';
import { random, testLog } from '@kronos/projections/testing';
import type { Page } from 'playwright-core';
import { launchChromium, NoChromium } from '../console/chromium.ts';
import { askWhatIf, type Dragged, drag } from './console/browser.ts';
import type { Asked, Said } from './console/ledger.ts';

const PARTS = ['views', 'memory', 'browser', 'open', 'drag', 'whatIf'] as const;
const given = parseArgs({
  allowPositionals: true,
  options: {
    parts: { type: 'string', default: PARTS.join(',') },
    seconds: { type: 'string', default: '30' },
    minutes: { type: 'string', default: '10' },
  },
});
const [aggregates = 200, hosts = 25, vms = 500, moves = 50] = given.positionals.map(Number);
const parts: ReadonlySet<string> = new Set(given.values.parts.split(','));
const seconds = Number(given.values.seconds);
const minutes = Number(given.values.minutes);
for (const part of parts) if (!PARTS.some((one) => one === part)) throw new Error(`there is no part ${part}`);

/** Compressed size of one view with all its reads. */
const MOST_KB = 100;
/** CPU of one view: the first read after a start of the ledger, and later reads. */
const MOST_CPU_MS = 200;
const MOST_FIRST_VIEW_MS = 1_000;
const LEAST_MOMENTS_PER_SECOND = 10;
const MOST_ANSWER_MS = 1_000;
const MOST_GROWTH_MB = 5;
/** A view that stays behind when another one comes costs half a megabyte each time. */
const MOST_OPEN_GROWTH_MB = 1;
/** Reads of a view per hour: the console reads every 15 s. */
const READS_PER_HOUR = 240;
/** Steps of a plan. */
const STEPS = 10;
/** The number of measurements of a view after the first one. */
const TIMES = 5;
/** Far beyond what a step takes: it ends only what hangs. */
const PATIENCE_MS = 300_000;

/** Samples of an open tab; the first third is the time in which caches fill. */
const SAMPLES = 12;
/** Interval between two decisions: the bench measures what real time does to an open tab. */
const DECISION_MS = 10_000;
/** More decisions than any list of a view has. */
const FULL = 400;

/** The time bar is dragged over this many moments of this aggregate; each is a snapshot of its own. */
const LARGE = { name: 'large', hosts: 250, vms: 5_000, moments: 60 };
/** Other options are tried at this one. */
const ASKED = { name: 'asked', hosts: 100, vms: 2_000 };

const nameOf = (n: number): string => `aggregate-${String(n).padStart(3, '0')}`;
const draw = random(1);
const policies = ['cpu', 'memory'].map((policy) => {
  return { policy, imbalance: 0.3, threshold: 0.2, participates: true, detected: true, sustainedCycles: 3 };
});

/** An aggregate with its VMs at random. */
const sketchOf = (size: { readonly name: string; readonly hosts: number; readonly vms: number }): Sketch => ({
  policies: { cpu: { threshold: 0.2 }, memory: { threshold: 0.1 } },
  hosts: Object.fromEntries(Array.from({ length: size.hosts }, (_, n) => [`${size.name}-host-${n}`, {}])),
  vms: Object.fromEntries(
    Array.from({ length: size.vms }, (_, n) => [
      `${size.name}-vm-${n}`,
      {
        host: `${size.name}-host-${Math.floor(draw() * size.hosts)}`,
        w: { cpu: draw() / 20, memory: draw() / 20 },
      },
    ]),
  ),
});

const bed = await ledgerBed();
const names = Array.from({ length: aggregates }, (_, n) => nameOf(n));
/** Of one plan: a minute to it, a second to each start, five to each end. */
const PLAN_MS = (60 + STEPS + 5 * STEPS) * 1000;
let planId = '';
for (const name of names) {
  const log = testLog(name, Date.now() - Math.ceil(moves / STEPS) * PLAN_MS);
  log.configured();
  let decidedMs = 0;
  const at = (n: number) => `${name}-host-${n % hosts}`;
  for (let done = 0; done < moves; done += STEPS) {
    const steps = Array.from({ length: Math.min(STEPS, moves - done) }, (_, i) => {
      const from = done + i;
      return { serverId: `${name}-vm-${from}`, from: at(from), to: at(from + 1) };
    });
    decidedMs = log.pass(60).nowMs;
    planId = log.decided('released', steps, { policies });
    log.dispatched(planId, steps.length);
    for (let i = 1; i <= steps.length; i++) log.pass(1).started({ task: `${planId}-s${i}` });
    for (let i = 1; i <= steps.length; i++) log.pass(5).completed({ task: `${planId}-s${i}` });
  }
  await bed.append(log.events);
  // The newest snapshot has a decision, as in a healthy installation.
  await bed.observed(planId, name, decidedMs, sketchOf({ name, hosts, vms }));
}
if (parts.has('whatIf')) {
  names.push(ASKED.name);
  const log = testLog(ASKED.name, Date.now());
  log.configured();
  await bed.append(log.events);
  await bed.decided(await bed.observed('asked-1', ASKED.name, Date.now(), sketchOf(ASKED)));
}
if (parts.has('drag')) {
  names.push(LARGE.name);
  const sketch = sketchOf(LARGE);
  for (let moment = 1; moment <= LARGE.moments; moment++) {
    // A snapshot is looked for around the time at which it was stored.
    const log = testLog(LARGE.name, Date.now());
    const id = log.decided('none', [], { policies, snapshotId: `large-${moment}` });
    await bed.observed(id, LARGE.name, log.nowMs, sketch);
    await bed.append(log.events);
  }
}

const ledger = await startLedger();
const name = nameOf(aggregates - 1);
const own = `/aggregates/${name}`;
const snapshot = `snapshot=${encodeURIComponent(planId)}`;
/** The reads of each view, as the console makes them. */
const views: Readonly<Record<string, readonly string[]>> = {
  fleet: ['/fleet', '/alarms', '/tasks?limit=50'],
  aggregate: [
    own,
    `${own}/imbalance`,
    `/decisions?aggregate=${name}&limit=200`,
    `/history?aggregate=${name}&limit=200`,
    `${own}/moves?limit=40`,
    `${own}/picture`,
  ],
  moment: [`${own}/picture?${snapshot}`, `/plans/${planId}`],
  host: [
    own,
    `${own}/imbalance`,
    `${own}/hosts`,
    `${own}/vms?limit=1000&host=${name}-host-1`,
    `/hosts/${name}-host-1`,
    `${own}/hosts/${name}-host-1/values`,
  ],
  vm: [
    `${own}/vms?id=${name}-vm-1`,
    `${own}/imbalance`,
    `/vms/${name}-vm-1`,
    `${own}/moves?limit=20&vm=${name}-vm-1`,
    `${own}/vms/${name}-vm-1/why`,
  ],
  plans: ['/plans?limit=200'],
  plan: [`/plans/${planId}`, `/plans/${planId}/hosts`, `${own}/picture?${snapshot}`],
  moves: ['/tasks?limit=200', '/aggregates', ...names.slice(0, 12).map((one) => `/aggregates/${one}/moves?limit=40`)],
  drains: [`${own}/drains?host=${name}-host-1&host=${name}-host-2&since=0&parallel=1`],
  held: ['/quarantine', '/cooldowns'],
  search: ['/search?q=host-1&limit=100'],
  whatIf: [`${own}/imbalance`, `${own}/decision?${snapshot}`, `${own}/picture?${snapshot}`],
};

const figures: Record<string, { kilobytes: number; firstCpuMs: number; cpuMs: number }> = {};
for (const [view, paths] of parts.has('views') ? Object.entries(views) : []) {
  const times: number[] = [];
  let bytes = 0;
  for (let i = 0; i <= TIMES; i++) {
    const { cpuMs } = await ledger.usage();
    bytes = 0;
    for (const path of paths) bytes += await bytesOf(path);
    times.push((await ledger.usage()).cpuMs - cpuMs);
  }
  const [first = 0, ...others] = times;
  const mean = others.reduce((sum, ms) => sum + ms, 0) / others.length;
  figures[view] = { kilobytes: rounded(bytes / 1024), firstCpuMs: rounded(first), cpuMs: rounded(mean) };
}

async function hourOfReads(): Promise<void> {
  for (let i = 0; i < READS_PER_HOUR; i++)
    for (const paths of Object.values(views)) for (const path of paths) await bytesOf(path);
}
async function memoryOfAnHour(): Promise<{ memoryMb: number; ledgerGrowthMb: number }> {
  // Caches fill up to their limit first, which is no growth.
  await hourOfReads();
  const { heapMb: before } = await ledger.usage('collected');
  await hourOfReads();
  const { heapMb, rssMb } = await ledger.usage('collected');
  return { memoryMb: rounded(rssMb), ledgerGrowthMb: rounded(heapMb - before) };
}
const memory = parts.has('memory') ? await memoryOfAnHour() : null;
const { browser, open, dragging, answers } = await inBrowser();

await ledger.stop();
await bed.close();
const within =
  Object.values(figures).every(
    ({ kilobytes, firstCpuMs, cpuMs }) => kilobytes <= MOST_KB && Math.max(firstCpuMs, cpuMs) <= MOST_CPU_MS,
  ) &&
  (memory === null || memory.ledgerGrowthMb <= MOST_GROWTH_MB) &&
  (browser === null || (browser.firstViewMs <= MOST_FIRST_VIEW_MS && browser.tabGrowthMb <= MOST_GROWTH_MB)) &&
  (open === null || Math.max(open.tabGrowthMb, open.ledgerGrowthMb) <= MOST_OPEN_GROWTH_MB) &&
  (dragging === null ||
    [dragging.first, dragging.again].every((d) => d.perSecond >= LEAST_MOMENTS_PER_SECOND && d.failed === 0)) &&
  (answers === null || answers.medianMs <= MOST_ANSWER_MS);
const size = { aggregates, hosts: aggregates * hosts, vms: aggregates * vms, moves: aggregates * moves };
const limits = {
  MOST_KB,
  MOST_CPU_MS,
  MOST_FIRST_VIEW_MS,
  MOST_GROWTH_MB,
  MOST_OPEN_GROWTH_MB,
  LEAST_MOMENTS_PER_SECOND,
  MOST_ANSWER_MS,
};
const startCpuMs = rounded(ledger.startCpuMs);
process.stdout.write(
  `${JSON.stringify({ size, startCpuMs, views: figures, memory, browser, open, dragging, answers, limits, within }, null, 2)}\n`,
);
process.exitCode = within ? 0 : 1;

/** The ledger in a process of its own, warm. */
async function startLedger() {
  const child = fork(new URL('./console/ledger.ts', import.meta.url), [bed.server.url, ...names], {
    execArgv: [...process.execArgv, '--expose-gc'],
  });
  const said = async <S extends Said>(): Promise<S> => {
    const ended = new AbortController();
    const exited = once(child, 'exit', { signal: ended.signal }).then(() => {
      throw new Error("the ledger's process has ended");
    });
    exited.catch(() => undefined);
    const [message] = await Promise.race([once(child, 'message', { signal: ended.signal }), exited]);
    ended.abort();
    return message as S;
  };
  const { url, startCpuMs } = await said<Extract<Said, { readonly url: string }>>();
  return {
    url,
    startCpuMs,
    async usage(asked: Asked = 'usage') {
      child.send(asked);
      return await said<Exclude<Said, { readonly url: string }>>();
    },
    async stop(): Promise<void> {
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
}

function bytesOf(path: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  get(`${ledger.url}/api/v1${path}`, { headers: { 'accept-encoding': 'br' } }, (answer) => {
    let bytes = 0;
    answer.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    answer.on('end', () =>
      answer.statusCode === 200 ? resolve(bytes) : reject(new Error(`${path}: ${answer.statusCode}`)),
    );
  }).on('error', reject);
  return promise;
}

/** With the CPU of the ledger for each moment. */
type DragCost = Dragged & { readonly ledgerMsPerMoment: number };

type InBrowser = {
  readonly browser: { readonly firstViewMs: number; readonly tabGrowthMb: number } | null;
  readonly open: Awaited<ReturnType<typeof leftOpen>> | null;
  /** Over moments that the page has not read yet, and over those that it keeps. */
  readonly dragging: { readonly first: DragCost; readonly again: DragCost } | null;
  readonly answers: Awaited<ReturnType<typeof askWhatIf>> | null;
};

async function inBrowser(): Promise<InBrowser> {
  const nothing = { browser: null, open: null, dragging: null, answers: null };
  if (!['browser', 'open', 'drag', 'whatIf'].some((part) => parts.has(part))) return nothing;
  const chromium = await launchChromium().catch((error: unknown) => {
    if (error instanceof NoChromium) return null;
    throw error;
  });
  if (chromium === null) return nothing;
  try {
    const page = await chromium.newPage({ viewport: { width: 1440, height: 900 } });
    page.setDefaultTimeout(PATIENCE_MS);
    return {
      browser: parts.has('browser') ? await firstViewAndHeap(page) : null,
      open: parts.has('open') ? await leftOpen(page) : null,
      dragging: parts.has('drag') ? await dragged(page) : null,
      answers: parts.has('whatIf') ? await answered(page) : null,
    };
  } finally {
    await chromium.close();
  }
}

/** Time to the first view, and the growth of the heap of a tab that reads the largest view for an hour. */
async function firstViewAndHeap(page: Page): Promise<NonNullable<InBrowser['browser']>> {
  const firsts: number[] = [];
  for (let i = 0; i < TIMES; i++) {
    await page.goto('about:blank');
    await page.goto(`${ledger.url}/`, { waitUntil: 'commit' });
    await page
      .getByRole('link', { name: nameOf(0), exact: true })
      .first()
      .waitFor();
    firsts.push(await page.evaluate('performance.now() - performance.getEntriesByType("navigation")[0].responseEnd'));
  }
  await page.goto(`${ledger.url}/#${own}`);
  await refreshes(page, READS_PER_HOUR / 4);
  const before = await tabMb(page);
  await refreshes(page, READS_PER_HOUR);
  return { firstViewMs: rounded(Math.min(...firsts)), tabGrowthMb: rounded((await tabMb(page)) - before) };
}

/** The heaps of the tab and of the ledger while a tab stays open and decisions come. */
async function leftOpen(page: Page) {
  const log = testLog(name, Date.now() - FULL * 1000);
  log.configured();
  // Lists of the newest are full before the first sample: what fills them is no growth.
  for (let i = 0; i < FULL; i++) log.pass(1).decided('none', [], { policies });
  await bed.append(log.events.splice(0));
  const heaps: { readonly tabMb: number; readonly ledgerMb: number }[] = [];
  for (let sample = 0; sample < SAMPLES; sample++) {
    await page.goto(`${ledger.url}/#${sample % 2 === 0 ? '/' : own}`);
    for (const end = Date.now() + (minutes * 60_000) / SAMPLES; Date.now() < end; ) {
      log.pass(10).decided('none', [], { policies });
      await bed.append(log.events.splice(0));
      await new Promise((resolve) => setTimeout(resolve, DECISION_MS));
    }
    const { heapMb } = await ledger.usage('collected');
    heaps.push({ tabMb: rounded(await tabMb(page)), ledgerMb: rounded(heapMb) });
  }
  // The same view at the end and when the caches were full.
  const [first, last] = [heaps[SAMPLES / 3 + 1], heaps.at(-1)];
  if (first === undefined || last === undefined) throw new Error('there are no samples');
  return {
    minutes,
    heaps,
    tabGrowthMb: rounded(last.tabMb - first.tabMb),
    ledgerGrowthMb: rounded(last.ledgerMb - first.ledgerMb),
  };
}

async function dragged(page: Page): Promise<NonNullable<InBrowser['dragging']>> {
  await page.goto(`${ledger.url}/#/aggregates/${LARGE.name}`);
  const measured = async (): Promise<DragCost> => {
    const before = await ledger.usage();
    const { moments, perSecond, longestGapMs, tabMsPerMoment, failed } = await drag(page, seconds);
    const after = await ledger.usage();
    return {
      moments,
      perSecond: rounded(perSecond),
      longestGapMs: rounded(longestGapMs),
      tabMsPerMoment: rounded(tabMsPerMoment),
      ledgerMsPerMoment: rounded((after.cpuMs - before.cpuMs) / Math.max(1, moments)),
      failed,
    };
  };
  return { first: await measured(), again: await measured() };
}

async function answered(page: Page): Promise<NonNullable<InBrowser['answers']>> {
  await page.goto(`${ledger.url}/#/aggregates/${ASKED.name}/what-if`);
  await page.locator('[data-state=whole]').waitFor();
  const { medianMs, worstMs, wholeMs } = await askWhatIf(page, 'cpu', TIMES);
  return { medianMs: rounded(medianMs), worstMs: rounded(worstMs), wholeMs: rounded(wholeMs) };
}

/** Reads the view again, as a tab does when it becomes visible, and waits for each answer. */
async function refreshes(page: Page, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    const answer = page.waitForResponse((response) => response.url().includes('/history?'));
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await answer;
  }
}

async function tabMb(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  await session.detach();
  return usedSize / 1024 ** 2;
}

function rounded(value: number): number {
  return Number(value.toFixed(1));
}
