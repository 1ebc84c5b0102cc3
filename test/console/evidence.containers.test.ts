import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { makeEvidence, readEvidence } from '@kronos/evidence';
import { memoryHistory, operate } from '@kronos/replay/testing';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { htmlOf, sha256 } from '../../libs/evidence/src/format.ts';
import { browserOrNull, LIMIT_MS } from './page.ts';

const browser = await browserOrNull();
let root: string;
let html: string;
let signed: string;

beforeEach(({ skip }) => {
  if (browser === null) skip();
});

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'kronos-evidence-'));
  const { events, snapshots } = operate({
    seed: 11,
    cycles: 20,
    aggregates: ['gpu'],
    hosts: 5,
    vmsPerHost: 5,
    searchWorkLimit: 40_000,
    failures: 0.1,
    commands: 0.05,
  });
  const history = memoryHistory(events, snapshots);
  const about = {
    range: {},
    anonymize: false,
    keyFile: null,
    madeBy: 'kronos test',
    nowMs: Date.parse('2026-01-06T00:00:00Z'),
  };
  html = (await makeEvidence({ history, ...about })).html;
  const keyFile = join(root, 'key.pem');
  await writeFile(keyFile, generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
  signed = (await makeEvidence({ history, ...about, keyFile })).html;
});
afterAll(async () => {
  await browser?.close();
  await rm(root, { recursive: true });
});

/** Opens a text as a file, without a network. */
async function opened(text: string): Promise<{ readonly page: Page; readonly wrong: string[]; readonly said: string }> {
  if (browser === null) throw new Error('no browser');
  const file = join(root, 'evidence.html');
  await writeFile(file, text);
  const context = await browser.newContext({ offline: true });
  const page = await context.newPage();
  page.setDefaultTimeout(LIMIT_MS);
  page.setDefaultNavigationTimeout(LIMIT_MS);
  const wrong: string[] = [];
  page.on('pageerror', (error) => wrong.push(error.message));
  page.on('request', (request) => {
    if (!/^(file|blob|data):/.test(request.url())) wrong.push(request.url());
  });
  await page.goto(pathToFileURL(file).href);
  await page.locator('html[data-state]').waitFor();
  return { page, wrong, said: (await page.locator('#state').textContent()) ?? '' };
}

const changedIn = (part: string): string => {
  const at = html.indexOf(`id="${part}">`) + `id="${part}">`.length + 200;
  return `${html.slice(0, at)}${html[at] === 'A' ? 'B' : 'A'}${html.slice(at + 1)}`;
};

describe('an evidence file in a browser without a network', () => {
  it('makes every decision again, and each has the recorded digest', async () => {
    const { page, wrong, said } = await opened(html);
    expect(said).toContain('Each of the 20 decisions was made again here');
    expect(wrong).toEqual([]);
    await page.context().close();
  });

  it.each(['recording', 'snapshots', 'core', 'view'])('names a changed byte in the %s', async (part) => {
    const { page, said } = await opened(changedIn(part));
    expect(said).toContain(`${part}: was changed`);
    await page.context().close();
  });

  it('names decisions that differ when the options were changed together with their digest', async () => {
    const { evidence } = readEvidence('evidence.html', html);
    if (evidence === null) throw new Error('no evidence');
    const { parts, manifest } = evidence;
    const recording = parts.recording.replaceAll('searchWorkLimit\\":40000', 'searchWorkLimit\\":1');
    expect(recording).not.toBe(parts.recording);
    const forged = { ...manifest, parts: { ...manifest.parts, recording: sha256(recording) } };
    const { page, said } = await opened(
      htmlOf({ manifestText: JSON.stringify(forged), signature: null, parts: { ...parts, recording } }),
    );
    expect(said).toMatch(/\d+ of 20 decisions differ from the recorded ones/);
    await page.context().close();
  });

  it('names the key of a signature, and a signature that is not of the file', async () => {
    const right = await opened(signed);
    expect(right.said).toContain('It is signed by the key');
    await right.page.context().close();
    const [, packed = ''] = /id="signature">([^<]*)</.exec(signed) ?? [];
    const { signature, ...rest } = JSON.parse(Buffer.from(packed, 'base64').toString()) as { signature: string };
    const other = JSON.stringify({
      ...rest,
      signature: `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`,
    });
    const wrong = await opened(signed.replace(packed, Buffer.from(other).toString('base64')));
    expect(wrong.said).toContain('signature: is not of this manifest');
    await wrong.page.context().close();
  });

  it('has the views of the console: goes through time, says why, and decides with other options and fewer hosts', async () => {
    const { page, wrong } = await opened(html);
    const time = await page.locator('#time').textContent();
    await page.getByRole('slider', { name: 'Recorded cycle' }).press('Home');
    await page
      .locator('#time')
      .filter({ hasNotText: time ?? '' })
      .waitFor();
    await page.locator('[data-state="whole"]').waitFor();
    await page.getByText('It has the digest of the recorded decision').waitFor();
    expect(await page.locator('svg.blocks rect.vm').count()).toBeGreaterThan(10);
    const policy = page.getByRole('spinbutton', { name: /: Threshold/ }).first();
    await policy.fill('0.01');
    await policy.press('Tab');
    await page.locator('label.changed').first().waitFor();
    await page.locator('.verdict').waitFor();
    const host = page.getByRole('checkbox', { name: /take .* away/ }).first();
    await host.check();
    const without = page.getByRole('region', { name: 'without the hosts', exact: true });
    await without.getByText(/^(planned|quiet|gated): /).waitFor();
    expect(wrong).toEqual([]);
    await page.context().close();
  });
});
