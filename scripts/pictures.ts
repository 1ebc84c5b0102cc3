/**
 * Takes the pictures of the documents: node scripts/pictures.ts CONSOLE.png RECORDING.webp REPORT.png
 *
 * Runs the real demo until its hosts are balanced, and looks at its console in a Chromium: one picture of the aggregate,
 * and a recording of the time slider going through the recorded cycles. The third is the page of kronos report about it.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { launchChromium } from '../test/console/chromium.ts';
import { animatedWebp } from './webp.ts';

const SIZE = { width: 1100, height: 1250 };
/** The regions that the recording shows: the hosts with their VMs, and the time bar below them. */
const SCENE = ['Hosts at that moment', 'Time'];
const FRAMES = 24;
const FRAME_MS = 450;
const LAST_MS = 2500;
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
  const page = await chromium.newPage({ viewport: SIZE, colorScheme: 'light' });
  const { aggregates } = (await (await fetch(`${url}api/v1/aggregates`)).json()) as {
    aggregates: { name: string }[];
  };
  const name = encodeURIComponent(aggregates[0]?.name ?? '');
  await page.goto(`${url}#/aggregates/${name}`);
  await page.locator('#freshness', { hasText: 'Live' }).waitFor();
  await page.locator('.uplot canvas').waitFor();
  writeFileSync(picture, await page.screenshot());
  writeFileSync(recording, animatedWebp(await frames(page, url, name), FRAME_MS, LAST_MS));
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

/** One still picture per recorded moment, oldest first: all with the same part of the page. */
async function frames(page: Page, url: string, name: string): Promise<Buffer[]> {
  const series = (await (await fetch(`${url}api/v1/aggregates/${name}/imbalance`)).json()) as { snapshotIds: string[] };
  const every = Math.ceil(series.snapshotIds.length / FRAMES);
  const ids = series.snapshotIds.filter((_, i) => i % every === 0);
  const session = await page.context().newCDPSession(page);
  const stills: Buffer[] = [];
  let clip: { x: number; y: number; width: number; height: number; scale: number } | null = null;
  for (const id of ids) {
    const shown = page.waitForResponse((response) => response.url().includes('/picture?snapshot='));
    await page.goto(`${url}#/aggregates/${name}?snapshot=${encodeURIComponent(id)}`);
    await shown;
    await page.locator('section[aria-label="Hosts at that moment"]').waitFor();
    // The view is drawn in the frame after its data has come.
    await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
    clip ??= await sceneOf(page);
    const { data } = await session.send('Page.captureScreenshot', {
      format: 'webp',
      quality: QUALITY,
      clip,
      captureBeyondViewport: true,
    });
    stills.push(Buffer.from(data, 'base64'));
  }
  return stills;
}

async function sceneOf(page: Page) {
  const boxes = await Promise.all(SCENE.map((label) => page.locator(`section[aria-label="${label}"]`).boundingBox()));
  const [first, last] = [boxes[0], boxes.at(-1)];
  if (first === null || first === undefined || last === null || last === undefined)
    throw new Error(`the view has not ${SCENE.join(' and ')}`);
  const y = Math.floor(first.y) - 8;
  return { x: 0, y, width: SIZE.width, height: Math.ceil(last.y + last.height) + 8 - y, scale: 1 };
}
