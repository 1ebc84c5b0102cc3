/**
 * Takes the pictures of the documents: node scripts/pictures.ts CONSOLE.png RECORDING.webp REPORT.png
 *
 * Runs the real demo until its hosts are balanced, and looks at its console in a Chromium: one picture of the aggregate,
 * and a recording of 20 s. The third is the page of kronos report about it.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { evenly } from '../services/ledger/src/aside/evenly.ts';
import { launchChromium } from '../test/console/chromium.ts';
import { animatedWebp } from './webp.ts';

const SIZE = { width: 1100, height: 1250 };
/** The size of the page in the recording. */
const SCENE = { width: 1100, height: 800 };
const QUALITY = 70;

const [picture, recording, report] = process.argv.slice(2);
if (picture === undefined || recording === undefined || report === undefined) {
  console.error('usage: node scripts/pictures.ts CONSOLE.png RECORDING.webp REPORT.png');
  process.exit(2);
}

const kronos = fileURLToPath(new URL('../libs/cli/bin/kronos.js', import.meta.url));
const demo = spawn(process.execPath, [kronos, 'demo', '--keep'], { stdio: ['ignore', 'pipe', 'inherit'] });
const ended = new Promise<void>((resolve) => demo.on('exit', () => resolve()));
const chromium = await launchChromium();
try {
  const { url, config } = await balancedDemo();
  const page = await chromium.newPage({ viewport: SIZE, colorScheme: 'light', reducedMotion: 'reduce' });
  const { aggregates } = (await (await fetch(`${url}api/v1/aggregates`)).json()) as {
    aggregates: { name: string }[];
  };
  const name = encodeURIComponent(aggregates[0]?.name ?? '');
  await page.goto(`${url}#/aggregates/${name}`);
  await page.locator('#freshness', { hasText: 'Live' }).waitFor();
  await page.locator('.uplot canvas').waitFor();
  writeFileSync(picture, await page.screenshot());
  await page.setViewportSize(SCENE);
  writeFileSync(recording, animatedWebp(await story(page, url, name)));
  await page.setViewportSize(SIZE);
  writeFileSync(report, await reportPicture(page, config));
} finally {
  await chromium.close();
  demo.kill('SIGINT');
  await ended;
}

/** The address of the console, and the configuration of the demo, once it has said that its hosts are balanced. */
async function balancedDemo(): Promise<{ readonly url: string; readonly config: string }> {
  let url = '';
  let config = '';
  for await (const line of createInterface(demo.stdout)) {
    url = /^console: (\S+)/.exec(line)?.[1] ?? url;
    config = /KRONOS_CONFIG=(\S+)/.exec(line)?.[1] ?? config;
    if (line.includes('until Ctrl-C')) break;
  }
  // The rest of its output is not kept.
  demo.stdout.resume();
  if (url === '' || config === '') throw new Error('the demo ended before its hosts were balanced');
  return { url, config };
}

/** The page of kronos report about everything that the demo did. */
async function reportPicture(page: Page, config: string): Promise<Buffer> {
  const directory = mkdtempSync(join(tmpdir(), 'kronos-picture-'));
  try {
    const file = join(directory, 'report.html');
    execFileSync(process.execPath, [kronos, 'report', '--since', '1h', '--html', file, '-c', config]);
    await page.goto(pathToFileURL(file).href);
    return await page.screenshot({ fullPage: true });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** A still picture, and how long it is shown. */
type Still = { readonly picture: Buffer; readonly ms: number };

/** Records about 20 s: the balance is lost, a plan, its moves, back through time, and the effect of another threshold. */
async function story(page: Page, url: string, name: string): Promise<Still[]> {
  const answer = await fetch(`${url}api/v1/aggregates/${name}/imbalance`);
  const series = (await answer.json()) as { snapshotIds: string[]; sequences: number[]; steps: number[] };
  const planned = series.steps.findIndex((steps) => steps > 0);
  if (planned < 0) throw new Error('the demo has no plan');
  const session = await page.context().newCDPSession(page);
  const stills: Still[] = [];
  const keep = async (ms: number, caption: string): Promise<void> => {
    await page.evaluate(captioned(caption));
    // The view is drawn in the frame after its data has come.
    await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
    const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: QUALITY });
    stills.push({ picture: Buffer.from(data, 'base64'), ms });
  };
  const id = (i: number): string => encodeURIComponent(series.snapshotIds[i] ?? '');
  const moment = async (i: number): Promise<void> => {
    await page.goto(`${url}#/aggregates/${name}?snapshot=${id(i)}`);
    await page.locator(`[data-moment="${series.snapshotIds[i]}"]`).waitFor();
  };
  const indices = series.snapshotIds.map((_, i) => i);
  // The first cycle may have a plan already.
  const lost = evenly(indices.slice(0, Math.max(1, planned)), 3);
  for (const i of lost) {
    await moment(i);
    await keep(2000 / lost.length, 'Balance is lost: the hosts on the left are above the band');
  }
  await moment(planned);
  await keep(1800, 'A plan: violet VMs would move to the dashed places');
  await page.getByRole('button', { name: 'with the plan' }).click();
  await keep(1400, 'A plan: the hosts with the plan carried out');
  await page.goto(`${url}#/plans/${id(planned)}?sequence=${series.sequences[planned]}`);
  await page.getByRole('heading', { level: 1, name: / takes? / }).waitFor();
  await keep(2600, 'A plan: every move, the time and the memory it takes');
  const after = indices.slice(planned + 1);
  for (const i of evenly(after, 9)) {
    await moment(i);
    await keep(450, 'The moves: each cycle as it was');
  }
  for (const i of evenly(indices.toReversed(), 12)) {
    await moment(i);
    await keep(250, 'Back through time: the whole page follows the slider');
  }
  await page.goto(`${url}#/aggregates/${name}/what-if?snapshot=${id(planned)}`);
  const whole = page.locator('[data-state=whole]');
  await whole.waitFor();
  await keep(1500, 'What if: the same moment with other options, decided in the browser');
  const field = page.getByLabel('cpu: Threshold');
  await field.fill('0.4');
  await field.blur();
  await page.locator('.verdict', { hasText: /in place of|No plan/ }).waitFor();
  await whole.waitFor();
  await keep(3500, 'What if: a threshold of 0.4 for cpu');
  return stills;
}

/** A program for the page: says below it what is seen. Its styles are set by script, as its policy allows no others. */
function captioned(text: string): string {
  return `{
  const caption = document.getElementById('caption') ?? document.body.appendChild(document.createElement('div'));
  caption.id = 'caption';
  caption.textContent = ${JSON.stringify(text)};
  Object.assign(caption.style, {
    position: 'fixed', inset: 'auto 0 0 0', padding: '10px 24px', background: '#1f2328', color: '#fff',
    font: '600 17px system-ui, sans-serif', zIndex: '1000',
  });
}`;
}
