import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { bareConnection } from '@kronos/eventlog/testing';
import { ledgerBed, type TestLedger } from '@kronos/ledger/testing';
import { actingBed, actingPage, people } from '@kronos/ledger/testing/acting';
import type { Sketch } from '@kronos/placement/testing';
import { testLog } from '@kronos/projections/testing';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { axe, browserOrNull, READ, seen, watchedPage } from './page.ts';

const NAME = 'web <b>eu</b>/1';
const HOST = 'host <img src=x onerror=alert(1)>';
const MARKUP = '<script>alert(1)</script>';

const browser = await browserOrNull();
let bed: Awaited<ReturnType<typeof ledgerBed>>;
let world: Awaited<ReturnType<typeof actingBed>>;
let ledger: TestLedger;
let page: Page;
let wrong: string[];
let log: ReturnType<typeof testLog>;
let planId: string;

const sketch: Sketch = {
  policies: { cpu: { threshold: 0.2 } },
  hosts: { [HOST]: {}, 'host-2': {} },
  vms: {
    'uuid-1': { host: HOST, w: { cpu: 0.5 }, set: { name: `shop ${MARKUP}` } },
    'uuid-2': { host: HOST, w: { cpu: 0.2 } },
  },
};

afterAll(async () => {
  await browser?.close();
});
beforeEach(async ({ skip }) => {
  if (browser === null) return skip();
  bed = await ledgerBed();
  world = await actingBed(await bed.connect('console'));
  log = testLog(NAME, Date.now() - 60_000);
  log.configured({ approval: 'manual', approvalTtlSeconds: 86_400 });
  planId = log.pass(20).proposed([
    { serverId: 'uuid-1', from: HOST, to: 'host-2' },
    { serverId: 'uuid-2', from: HOST, to: 'host-2' },
  ]);
  await bed.observed(planId, NAME, log.nowMs, sketch);
  await bed.append(log.events.splice(0));
  ledger = await bed.start({ scope: [NAME, 'idle'] }, Date.now, world.acting);
  ({ page, wrong } = await watchedPage(browser));
});
afterEach(async () => {
  if (browser === null) return;
  await page.context().close();
  await bed.close();
  await world.close();
  expect(wrong).toEqual([]);
});

const view = (path = '') => `#/aggregates/${encodeURIComponent(NAME)}${path}`;
const region = (name: string) => page.locator(`section[aria-label="${name}"]`);
const dialog = () => page.getByRole('dialog');
const button = (name: string, within: Pick<Page, 'getByRole'> = page) =>
  within.getByRole('button', { name, exact: true });

async function open(hash = ''): Promise<void> {
  await page.goto('about:blank');
  await page.goto(`${ledger.url}/${hash}`);
  await page.locator('#freshness', { hasText: READ }).waitFor();
}

async function logIn({ userName, password } = people.ada as { userName: string; password: string }): Promise<void> {
  await button('Log in').click();
  await dialog().getByLabel('User name', { exact: true }).fill(userName);
  await dialog().getByLabel('Password', { exact: true }).fill(password);
  await button('Log in', dialog()).click();
}

/** Confirms what an open dialog shows, and returns what it then says. */
async function confirm(name: string): Promise<string> {
  await dialog().getByText('This will happen:').waitFor();
  await button(name, dialog()).click();
  await dialog().getByRole('status').waitFor();
  const said = await seen(dialog());
  await button('Close', dialog()).click();
  await dialog().waitFor({ state: 'detached' });
  return said;
}

describe('without acting', () => {
  it('the console offers neither a log-in nor a command', async () => {
    await ledger.stop();
    ledger = await bed.start({ scope: [NAME] });
    await open(view());
    expect(await button('Log in').count()).toBe(0);
    expect(await button('Pause').count()).toBe(0);
  });
});

describe('a person', () => {
  it('logs in, is known after a reload, and logs out; commands are there in between only', async () => {
    await open(view());
    expect(await button('Pause').count()).toBe(0);
    await logIn();
    await page.getByText('ada@Default').waitFor();
    // Whose session it is is asked again where the answer did not come.
    await page.route('**/api/v1/session', (route) => route.abort(), { times: 1 });
    await page.reload();
    await page.getByText('ada@Default').waitFor();
    await button('Pause').waitFor();
    expect(await page.evaluate('document.cookie')).toBe('');
    await button('Log out').click();
    await button('Log in').waitFor();
    expect(await button('Pause').count()).toBe(0);
  });

  it('reads why a log-in was refused, can try again, and leaves with Escape', async () => {
    await open();
    await logIn({ ...people.ada, password: 'wrong' });
    await dialog().getByRole('alert').filter({ hasText: 'Keystone refused these credentials' }).waitFor();
    await dialog().getByLabel('User name', { exact: true }).fill(people.grace.userName);
    await dialog().getByLabel('Password', { exact: true }).fill(people.grace.password);
    await button('Log in', dialog()).click();
    await dialog().getByRole('alert').filter({ hasText: 'none of the roles kronos_operator' }).waitFor();
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    await dialogless();
    await button('Log in').click();
    await dialog().getByRole('combobox').selectOption('applicationCredential');
    await dialog().getByLabel('Id', { exact: true }).fill('cred-1');
    await dialog().getByLabel('Secret', { exact: true }).fill('secret-of-cred-1');
    await page.keyboard.press('Enter');
    await page.getByText('ada@Default').waitFor();
  });

  /** The focus is back where it was. */
  const dialogless = async () =>
    expect(await button('Log in').evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true);

  it('skips an unreadable event with a reason, where they are a custodian', async () => {
    const connection = await bareConnection(bed.server.url);
    const { seq } = (await connection.request('kronos.controls.idle', '{}')).json() as { seq: number };
    await connection.close();
    const skip = `Skip event ${seq}`;
    await open('#/aggregates/idle');
    await logIn();
    await page.getByText('ada@Default').waitFor();
    await page.getByText('Nothing is planned until event').first().waitFor();
    expect(await button(skip).count()).toBe(0);
    await button('Log out').click();
    await logIn(people.carol);
    await button(skip).click();
    await dialog().getByText('This will happen:').waitFor();
    expect(await seen(dialog())).toMatch(new RegExp(`skipped 1 unreadable event.*event ${seq} \\(`));
    expect(await axe(page)).toEqual([]);
    const reason = dialog().getByLabel('Reason, shown permanently');
    // Without a reason the browser does not send it.
    await button(skip, dialog()).click();
    expect(
      await reason.evaluate(
        (field) => (field as unknown as { validity: { valueMissing: boolean } }).validity.valueMissing,
      ),
    ).toBe(true);
    await reason.fill(`garbage ${MARKUP}`);
    expect(await confirm(skip)).toMatch(/skipped 1 unreadable event.* Recorded as event \d+ by carol@Default/);
    await button(skip).waitFor({ state: 'detached' });
    expect(await page.getByText('Nothing is planned until event').count()).toBe(0);
  });

  it('approves a plan after reading what it does; names and comments with markup are text', async () => {
    await open(`#/plans/${encodeURIComponent(planId)}`);
    await logIn();
    await button('Approve').click();
    await dialog().getByText('approved: 2 tasks released').waitFor();
    const read = await seen(dialog());
    expect(read).toContain(`${HOST} → host-2`);
    expect(read).toContain(planId);
    expect(read).toMatch(/Digest sha256:[0-9a-f]{64}/);
    await dialog().getByLabel('Comment').fill(MARKUP);
    expect(await confirm('Approve')).toMatch(/approved: 2 tasks released Recorded as event \d+ by ada@Default/);
    await region('Events').locator('summary').click();
    await region('Events').getByText('plan.approved').waitFor();
    expect(await seen(region('Events'))).toContain(MARKUP);
    expect(await button('Approve').count()).toBe(0);
  });

  it('sees that a plan changed after they read it, reads the new version, and approves it', async () => {
    await open(`#/plans/${encodeURIComponent(planId)}`);
    await logIn();
    await button('Approve').click();
    await dialog().getByText('approved: 2 tasks released').waitFor();
    log.pass(1).rejected(planId, [2]);
    await bed.append(log.events.splice(0));
    await button('Approve', dialog()).click();
    await dialog().getByRole('alert').filter({ hasText: 'has changed since you read it' }).waitFor();
    await dialog().getByText('approved: 1 task released', { exact: true }).waitFor();
    expect(await confirm('Approve')).toContain('approved: 1 task released');
  });

  it('rejects one step of a plan', async () => {
    await open(`#/plans/${encodeURIComponent(planId)}`);
    await logIn();
    await button('Reject').click();
    await dialog().getByLabel('Only these steps').fill('2');
    await dialog().getByLabel('Comment').focus();
    await dialog().getByText('rejected: 1 step').waitFor();
    expect(await confirm('Reject')).toContain('1 step still waiting');
  });

  it('pauses and resumes, drains and ends the drain, quarantines and releases, by keyboard too', async () => {
    await open(view());
    await logIn();
    await button('Pause').focus();
    await page.keyboard.press('Enter');
    await dialog().getByText('paused: nothing is planned').waitFor();
    // Closed and opened again at once: the browser tells of the first only after that.
    await page.evaluate(
      "document.getElementById('dialog').close(); document.querySelector('main [data-key=Pause]').click()",
    );
    await dialog().getByText('paused: nothing is planned').waitFor();
    await dialog().getByLabel('Comment').fill('change 4711');
    await page.keyboard.press('Enter');
    await dialog().getByRole('status').waitFor();
    await page.keyboard.press('Enter');
    await dialog().waitFor({ state: 'detached' });
    await region('State').getByText('Paused').waitFor();
    await button('Resume').click();
    expect(await confirm('Resume')).toContain('resumed: was paused by ada@Default');
    await open(view(`/hosts/${encodeURIComponent(HOST)}`));
    await button(`Drain ${HOST}`).click();
    expect(await confirm(`Drain ${HOST}`)).toContain('will be drained');
    await button('End the drain').click();
    expect(await confirm('End the drain')).toContain('withdrawn before it started');
    await open(view('/vms/uuid-1'));
    await button('Quarantine').click();
    await dialog().getByText('is quarantined until it is released').waitFor();
    await dialog().getByRole('combobox').selectOption('8 hours');
    await dialog().getByText('(in 8 h)').waitFor();
    await confirm('Quarantine');
    await button('Release').click();
    expect(await confirm('Release')).toContain('is released from quarantine');
  });

  it('drains hosts in turn: reads where the VMs go, confirms each drain, and ends it after the maintenance', async () => {
    await open(view());
    await logIn();
    await page.getByRole('link', { name: 'Rolling maintenance' }).click();
    const hosts = region('Hosts');
    await hosts.getByLabel('Order').selectOption('rolling');
    for (const name of [HOST, 'host-2']) await hosts.getByRole('checkbox', { name, exact: true }).check();
    expect(await seen(hosts)).toContain(`Order: ${HOST}, host-2. Nothing is drained yet`);
    await button('Continue with 2 hosts').click();
    await region('Next').getByText('next.').waitFor();
    expect(await seen(region('Next'))).toContain(`Drain ${HOST} next.`);
    expect(await axe(page)).toEqual([]);
    await button(`Drain ${HOST}`).click();
    await dialog().getByText(`shop ${MARKUP} → host-2`).waitFor();
    const given = page.waitForResponse((response) => new URL(response.url()).pathname === '/api/v1/commands');
    expect(await confirm(`Drain ${HOST}`)).toContain('will be drained');
    const { commandId } = (await (await given).json()) as { commandId: string };
    await region('Next').getByText('Wait: the next host follows when this one is enabled.').waitFor();
    log.pass(1).hostDisabled(commandId, HOST);
    log.pass(1).hostDrained(commandId, HOST);
    await bed.append(log.events.splice(0));
    await region('Next').getByText('is empty. Do its maintenance').waitFor();
    // The address is the whole run: it is there after a reload, and for a person who only looks.
    await page.reload();
    await region('Next').getByText('is empty. Do its maintenance').waitFor();
    await button(`End the drain of ${HOST}`).click();
    await confirm(`End the drain of ${HOST}`);
    log.pass(1).hostEnabled(commandId, HOST);
    await bed.append(log.events.splice(0));
    await button('Drain host-2').waitFor();
    expect(await seen(hosts)).toMatch(/the host is enabled host-2 \d+ enabled waiting/);
    await button('Log out').click();
    await region('Next').getByText('Or log in, above.').waitFor();
    expect(await button('Drain host-2').count()).toBe(0);
  });

  it('plans moves to another cell, of an aggregate that is between cells only', async () => {
    await ledger.stop();
    const { options } = world.acting;
    const acting = { ...world.acting, options: { ...options, cells: [NAME, 'idle'] } };
    ledger = await bed.start({ scope: [NAME, 'idle', 'far'] }, Date.now, acting);
    await open(view());
    await logIn();
    await button('Plan moves to another cell').click();
    await dialog().getByText('requested a plan between cells to idle').waitFor();
    await dialog().getByLabel('At most this many moves').fill('3');
    await dialog().getByLabel('Other flavors').fill('old.small=new.small');
    await dialog().getByLabel('Comment').focus();
    await dialog().getByText('at most 3 moves').waitFor();
    await dialog().getByText('flavor old.small becomes new.small').waitFor();
    expect(await confirm('Plan moves to another cell')).toContain('requested a plan between cells to idle');
    await region('What happened').getByText('asked for a plan between cells').waitFor();
    await open('#/aggregates/far');
    await button('Pause').waitFor();
    expect(await button('Plan moves to another cell').count()).toBe(0);
  });

  it('aborts and closes a move', async () => {
    log.pass(1).approved(planId);
    log.pass(1).started({ task: `${planId}-s1` });
    await bed.append(log.events.splice(0));
    await open(view());
    await logIn();
    const move = region('Moves in flight');
    await move.getByRole('button', { name: 'Close the move of name-of-uuid-1' }).click();
    await dialog().getByRole('alert').filter({ hasText: 'no abort of' }).waitFor();
    await dialog().getByLabel('Without an abort, and although Nova may still move the VM').check();
    await dialog().getByText('is being closed').waitFor();
    await button('Go back', dialog()).click();
    await move.getByRole('button', { name: 'Abort the move of name-of-uuid-1' }).click();
    expect(await confirm('Abort the move of name-of-uuid-1')).toContain('asks Nova to abort it');
    await move.getByRole('button', { name: 'Cancel the move of name-of-uuid-2' }).click();
    expect(await confirm('Cancel the move of name-of-uuid-2')).toContain('is cancelled before it started');
    // The words are explained beside the buttons. The page of the plan has them, too, and the pause.
    expect(await seen(region('Moves in flight'))).toContain(
      'Abort: Nova stops the move, and the VM stays where it is.',
    );
    await region('Moves in flight').getByRole('link', { name: 'plan', exact: true }).first().click();
    await page.locator('.chip', { hasText: 'released' }).waitFor();
    await page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
    await region('Steps').getByRole('button', { name: 'Abort the move of name-of-uuid-1' }).waitFor();
    await open();
    const [pause, table] = await Promise.all([
      page.getByRole('button', { name: 'Pause all' }).boundingBox(),
      region('Aggregates').boundingBox(),
    ]);
    // The button that stops everything stands above all rows.
    expect(pause?.y).toBeLessThan(table?.y ?? 0);
  });

  it('whose session has ended sees a message and is logged out on the page', async () => {
    await open(view());
    await logIn();
    await button('Pause').click();
    await dialog().getByText('This will happen:').waitFor();
    world.sim.act({ act: 'revokeTokens' });
    await button('Pause', dialog()).click();
    await dialog().getByRole('alert').filter({ hasText: 'log in again' }).waitFor();
    await page.keyboard.press('Escape');
    await button('Log in').waitFor();
    expect(await seen(region('State'))).not.toContain('Paused');
  });

  it('meets no violation of WCAG in the dialogs and with the commands, in light, dark and on a phone', async () => {
    for (const [colorScheme, width] of [
      ['light', 1280],
      ['dark', 320],
    ] as const) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await page.context().clearCookies();
      await open(view());
      await button('Log in').click();
      expect(await axe(page)).toEqual([]);
      await page.keyboard.press('Escape');
      await logIn();
      await page.getByText('ada@Default').waitFor();
      await button('Pause').click();
      await dialog().getByText('This will happen:').waitFor();
      expect(await axe(page)).toEqual([]);
      await page.keyboard.press('Escape');
      expect(await axe(page)).toEqual([]);
      const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
      expect(await page.evaluate(overflow)).toBe(0);
    }
  });
});

it('a page of another origin can neither log in nor give a command with the cookie of the console', async () => {
  await open();
  await logIn();
  await page.getByText('ada@Default').waitFor();
  // Another port of this machine is the same site: the browser sends the cookie.
  const server = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<title>x</title>'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    await page.evaluate(
      async ([commands = '', session = '']) => {
        const body = JSON.stringify({ command: { command: 'pause', aggregate: '_all_' }, digest: '', comment: null });
        const ask = (url: string, mode: 'cors' | 'no-cors', type: string) =>
          fetch(url, { method: 'POST', mode, credentials: 'include', headers: { 'content-type': type }, body }).catch(
            () => undefined,
          );
        await ask(commands, 'no-cors', 'text/plain');
        await ask(session, 'no-cors', 'text/plain');
        await ask(commands, 'cors', 'application/json');
      },
      [`${ledger.url}/api/v1/commands`, `${ledger.url}/api/v1/session`],
    );
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
  // Text needs no permission: it came to the ledger, which refused it. For JSON the browser asks first, and gets none.
  const metrics = await ledger.text('/metrics');
  for (const route of ['commands', 'session'])
    expect(metrics).toMatch(new RegExp(`kronos_http_requests_total\\{route="/api/v1/${route}",status="4xx"\\} [12]\n`));
  expect(wrong.splice(0)).toEqual([expect.stringContaining('blocked by CORS policy')]);
  const state = (await ledger.get('/api/v1/aggregates')).body as { aggregates: { paused: { everywhere: unknown } }[] };
  expect(state.aggregates.map(({ paused }) => paused.everywhere)).toEqual([null, null]);
  const forged = actingPage(ledger.url);
  expect((await forged.call('DELETE', '/session', undefined, { origin: 'http://127.0.0.1:1' })).status).toBe(403);
});
