// The views of an evidence file: every recorded decision again, and the console's views of any of its moments, answered from the file.
import { columns } from '../../../services/ledger/src/console/blocks.js';
import { decider } from '../../../services/ledger/src/console/decider.js';
import { layout } from '../../../services/ledger/src/console/layout.js';
import { clockTime, figures, link, pending, section, table } from '../../../services/ledger/src/console/parts.js';
import { worstPolicy } from '../../../services/ledger/src/console/ratio.js';
import { whatIf } from '../../../services/ledger/src/console/views/whatIf.js';
import { serve } from './api.js';
import { html, render } from './lib/lit-html.js';

/** Lets the page draw. */
const breathe = () => new Promise((resolve) => setTimeout(resolve));

const eventsIn = (files) =>
  files['log.jsonl']
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const { sequence, storedAt, originallyStoredAt, event } = JSON.parse(line);
      const original = originallyStoredAt === undefined ? {} : { originallyStoredAt: Date.parse(originallyStoredAt) };
      return { sequence, storedAt: Date.parse(storedAt), ...original, event };
    });

/** The decisions of the log whose snapshots are here, each with the state that it was made on. */
function cyclesIn(core, snapshots, events) {
  const waiting = events
    .filter(({ event }) => event.type === 'cycle.decided' && snapshots.has(event.data.snapshotId))
    .map(({ event }) => event)
    .sort((a, b) => a.data.basis - b.data.basis);
  const folder = core.createFolder();
  const cycles = [];
  const take = (event) =>
    cycles.push({
      event,
      snapshot: snapshots.get(event.data.snapshotId),
      state: core.aggregateState(folder.snapshot(), event.aggregate),
    });
  for (const stored of events) {
    while (waiting.length > 0 && waiting[0].data.basis < stored.sequence) take(waiting.shift());
    folder.apply(stored);
  }
  for (const event of waiting) take(event);
  return cycles.sort((a, b) => (a.snapshot.time < b.snapshot.time ? -1 : 1));
}

/** Every decision again. A digest that differs is named. */
async function decideAgain({ core, manifest, sha256, state }, cycles) {
  const different = [];
  for (const [i, cycle] of cycles.entries()) {
    state.textContent = `Deciding again: ${i + 1} of ${cycles.length}`;
    await breathe();
    cycle.decision = core.decide(core.decideInput(cycle.state, cycle.snapshot));
    const digest = await sha256(core.canonicalJson(cycle.decision));
    const { snapshotId, digests } = cycle.event.data;
    const recorded = manifest.anonymized ? manifest.decisions[snapshotId] : digests.decision;
    if (digest !== manifest.decisions[snapshotId] || digest !== recorded)
      different.push(`${snapshotId} (${clockTime(cycle.snapshot.time)})`);
  }
  return different;
}

const signatureText = ({ kind, publicKey }) =>
  ({
    none: 'It is not signed.',
    signed: `It is signed by the key ${publicKey}.`,
    unable: 'It is signed; this browser cannot check the signature: kronos evidence verify can.',
  })[kind];

/** A snapshot that was not scored when it was taken is scored as its decision did. */
function pictureOf(core, { snapshot, state }) {
  if (snapshot.scores.policies.length > 0) return core.pictureOf(snapshot);
  const { options } = core.decideInput(state, snapshot);
  return core.pictureOf({ ...snapshot, scores: core.score({ ...snapshot, options }) });
}

const stepOf = ({ why: _, ...step }) => step;

/** The imbalances of an aggregate over its cycles, as the ledger answers them. */
function imbalancesOf(cycles) {
  const before = cycles.map(({ decision }) => new Map(decision.before.policies.map((one) => [one.policy, one])));
  const names = [...new Set(before.flatMap((policies) => [...policies.keys()]))];
  return {
    times: cycles.map(({ snapshot }) => snapshot.time),
    snapshotIds: cycles.map(({ snapshot }) => snapshot.id),
    steps: cycles.map(({ decision }) => decision.plan?.steps.length ?? 0),
    runs: [],
    policies: names.map((policy) => ({
      policy,
      imbalance: before.map((policies) => policies.get(policy)?.imbalance ?? null),
      threshold: before.map((policies) => policies.get(policy)?.threshold ?? null),
    })),
  };
}

/** What the console's interface answers, from the cycles of the file. */
function answerer(core, cycles, manifest) {
  const byId = new Map(cycles.map((cycle) => [cycle.snapshot.id, cycle]));
  return (path) => {
    const [, name, what, query] = /^\/aggregates\/([^/]+)\/(imbalance|decision|picture)(\?.*)?$/.exec(path) ?? [];
    const own = cycles.filter(({ event }) => event.aggregate === decodeURIComponent(name ?? ''));
    if (what === 'imbalance') return imbalancesOf(own);
    const cycle = byId.get(new URLSearchParams(query).get('snapshot'));
    if (cycle === undefined || !own.includes(cycle)) return null;
    const { event, snapshot, state, decision } = cycle;
    if (what === 'picture') return pictureOf(core, cycle);
    const { snapshotId, snapshotTime: time, outcome, reason, plannerVersion } = event.data;
    return {
      aggregate: event.aggregate,
      decision: {
        time,
        snapshotId,
        outcome,
        reason,
        plannerVersion,
        sequence: snapshotId,
        digest: manifest.decisions[snapshotId],
      },
      steps: decision.plan === null ? [] : decision.plan.steps.map(stepOf),
      input: { ...core.decideInput(state, snapshot) },
      missing: null,
    };
  };
}

const whyTable = (caption, aggregate, snapshot, steps) =>
  table(
    caption,
    [
      ['Step', ({ step }) => step, 'number'],
      ['VM', ({ serverId, serverName }) => html`<a href=${link.vm(aggregate, serverId, snapshot)}>${serverName}</a>`],
      ['From', ({ from }) => from],
      ['To', ({ to }) => to],
      [
        'Why',
        ({ why }) => (why === undefined ? '' : html`${why.text} <small class="dim">${figures(why.detail)}</small>`),
      ],
    ],
    steps,
    'No move.',
  );

/** The moment as it was: hosts with their VMs, the decision and its reasons. */
function momentView(core, cycle) {
  const { snapshot, event, decision } = cycle;
  const picture = pictureOf(core, cycle);
  const steps = decision.plan?.steps ?? [];
  const policy = worstPolicy(picture.policies);
  const how = {
    aggregate: event.aggregate,
    width: Math.max(280, Math.min(innerWidth - 64, 1600)),
    snapshot: snapshot.id,
    running: new Set(),
    draining: new Set(),
  };
  return html`
    ${section('Hosts', picture.policies.length === 0 ? html`<p class="dim">No policy was scored.</p>` : columns(layout(picture, policy, steps, false), how))}
    ${section(
      'Decision',
      html`<p>${decision.outcome}: ${decision.reason.text}</p>
        ${whyTable('Moves of the recorded plan', event.aggregate, snapshot.id, steps)}
        ${table(
          'Refused candidates',
          [
            ['Why VMs were not moved', ([code]) => core.meaningOf(code) ?? code],
            ['Candidates', ([, n]) => n, 'number'],
          ],
          Object.entries(decision.refusals),
          'No candidate was refused.',
        )}`,
    )}`;
}

/** One VM over the recorded time. */
function vmView(cycles, id) {
  const seen = cycles.flatMap((cycle) => {
    const server = cycle.snapshot.servers.find((one) => one.id === id);
    const step = cycle.decision.plan?.steps.find(({ serverId }) => serverId === id);
    return server === undefined ? [] : [{ cycle, server, step }];
  });
  const told = seen.filter(({ server, step }, i) => step !== undefined || server.host !== seen[i - 1]?.server.host);
  return section(
    `VM ${seen[0]?.server.name ?? id}`,
    table(
      'Hosts of the VM and plans that move it',
      [
        ['Time', ({ cycle }) => clockTime(cycle.snapshot.time)],
        ['Host', ({ server }) => server.host],
        ['Plan', ({ step }) => (step === undefined ? '' : `to ${step.to}: ${step.why?.text ?? ''}`)],
      ],
      told,
      'The recording does not have it.',
    ),
  );
}

const withoutHosts = decider();
const UNCHANGED = { policies: {}, options: {}, anyway: false };

/** The decision about the moment without some hosts, by the worker: a search would hold up the page. */
function decisionWithout(core, { snapshot, state }, away, redraw) {
  const hosts = snapshot.hosts.map((host) =>
    away.has(host.name)
      ? { ...host, service: { ...host.service, status: 'disabled', disabledReason: 'taken away' } }
      : host,
  );
  const input = { ...core.decideInput(state, { ...snapshot, hosts }) };
  const key = JSON.stringify([snapshot.id, [...away].sort()]);
  return withoutHosts(key, { input, recorded: [], changes: UNCHANGED }, redraw);
}

/** What the worker has answered so far. */
function without(event, snapshot, { answer, error }) {
  if (error !== null) return html`<p class="bad">${error}</p>`;
  if (answer === null) return pending('The moment is decided without the hosts …');
  const { outcome, reason, steps } = answer.would;
  return html`<p>${outcome}: ${reason.text}${answer.whole ? '' : html` <span class="dim">The search goes on …</span>`}</p>
    ${whyTable('Moves without the hosts', event.aggregate, snapshot.id, steps)}`;
}

/** The plan without some hosts. */
function awayView(core, cycle, away, redraw) {
  const { snapshot, event } = cycle;
  const chosen = snapshot.hosts.filter(({ name }) => away.has(name));
  const toggle = (name) => (changed) => {
    if (changed.target.checked) away.add(name);
    else away.delete(name);
    redraw();
  };
  return section(
    'Take hosts away',
    html`<div class="tools">${snapshot.hosts.map(
      ({ name }) =>
        html`<label><input type="checkbox" aria-label=${`take ${name} away`} .checked=${away.has(name)} @change=${toggle(name)}> ${name}</label>`,
    )}</div>
    ${chosen.length === 0 ? '' : html`<div role="region" aria-label="without the hosts">${without(event, snapshot, decisionWithout(core, cycle, away, redraw))}</div>`}`,
  );
}

/** Where an address leads: `#/aggregates/NAME/...`. */
function placeOf(hash, cycles) {
  const [path = '', search = ''] = hash.replace(/^#/, '').split('?');
  const [, , name, kind, id] = path.split('/').map(decodeURIComponent);
  const query = new URLSearchParams(search);
  const aggregate = cycles.some(({ event }) => event.aggregate === name) ? name : cycles.at(-1).event.aggregate;
  const own = cycles.filter(({ event }) => event.aggregate === aggregate);
  const cycle = own.find(({ snapshot }) => snapshot.id === query.get('snapshot')) ?? own.at(-1);
  query.set('snapshot', cycle.snapshot.id);
  return { aggregate, cycle, own, query, vm: kind === 'vms' ? id : null };
}

/**
 * Called by boot.js, which loads this part of the file once its digest is checked.
 *
 * @public
 * @param page what the page's own program has checked and loaded
 */
export async function show(page) {
  const { core, manifest, signature, parts, state } = page;
  const files = JSON.parse(parts.recording);
  const snapshots = new Map(core.unpackSnapshots(JSON.parse(parts.snapshots)).map(({ id, body }) => [id, body]));
  const cycles = cyclesIn(core, snapshots, eventsIn(files));
  const different = await decideAgain(page, cycles);
  state.textContent =
    different.length === 0
      ? `Each of the ${cycles.length} decisions was made again here, and has the recorded digest. ${signatureText(signature)}`
      : `${different.length} of ${cycles.length} decisions differ from the recorded ones: ${different.slice(0, 10).join(', ')}.`;
  state.className = different.length === 0 ? 'good' : 'bad';
  serve(answerer(core, cycles, manifest));
  const root = document.createElement('div');
  document.getElementById('main').append(root);
  const away = new Set();
  const aggregates = [...new Set(cycles.map(({ event }) => event.aggregate))];
  let turn = 0;

  async function draw() {
    turn += 1;
    const own = turn;
    const { aggregate, cycle, query, vm, own: ofAggregate } = placeOf(location.hash, cycles);
    const data = await whatIf.load({ name: aggregate }, query);
    const late = await whatIf.late({ name: aggregate }, { query });
    if (own !== turn) return;
    const redraw = () => void draw();
    const go = (hash) => {
      if (location.hash === hash) redraw();
      else location.hash = hash;
    };
    render(
      html`<p>${manifest.aggregates.join(', ')}, ${clockTime(manifest.since)} to ${clockTime(manifest.until)}; planner ${manifest.plannerVersion}${manifest.anonymized ? '; names were replaced' : ''}.</p>
        ${aggregates.length < 2 ? '' : html`<nav aria-label="Aggregates">${aggregates.map((name) => html`<a href=${link.whatIf(name)}>${name}</a> `)}</nav>`}
        <p id="time">${clockTime(cycle.snapshot.time)}</p>
        ${vm === null ? '' : vmView(ofAggregate, vm)}
        ${whatIf.show(data, { go, late, redraw, query })}
        ${momentView(core, cycle)}
        ${awayView(core, cycle, away, redraw)}`,
      root,
    );
  }
  addEventListener('hashchange', () => void draw());
  await draw();
  document.documentElement.dataset.state = different.length === 0 ? 'agrees' : 'differs';
}
