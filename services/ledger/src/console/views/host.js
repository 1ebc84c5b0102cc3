import { read, readOrRefused, tryRead } from '../api.js';
import { drawLines, drawn } from '../chart.js';
import { byHand, hostCommands } from '../commands.js';
import { isAbout } from '../concerns.js';
import { ref } from '../lib/directives/ref.js';
import { html, svg } from '../lib/lit-html.js';
import { planMarks } from '../marks.js';
import { indexOf, momentOf, pastStory } from '../moment.js';
import { openPlan } from '../openPlan.js';
import {
  ASSUMED_PACE,
  clockTime,
  eventsTable,
  expected,
  facts,
  figure,
  heat,
  heatWords,
  link,
  missing,
  movesNow,
  named,
  near,
  pending,
  said,
  section,
  table,
  usesUtc,
  when,
} from '../parts.js';
import { counts } from '../ratio.js';
import { skyline, topOf } from '../skyline.js';
import { timeBar } from '../timeBar.js';
import { count, memoryText, shareText } from '../words.js';

const servers = (title, rows, last) =>
  rows.length === 0
    ? ''
    : html`<h3>${title}</h3>${table(title, [['VM', (vm) => named(vm.serverName, vm.serverId)], ...last], rows, '')}`;

/** The preview of a drain, as `kronos drain` shows it. */
function drainPreview(name, late, view, choose) {
  if (view.drain !== true)
    return html`<p><button type="button" @click=${() => choose({ ...view, drain: true }, { read: true })}>Show what a drain would do</button>
      <span class="dim">A preview: nothing is drained.</span></p>`;
  if (late?.drain === undefined) return pending('The moves are planned …');
  if (late.drain.refused !== undefined) return missing(late.drain.refused);
  const { moves: leaving, waiting, stuck, blockedBy, holds, disabled, snapshotTime, time, host: own } = late.drain;
  return html`
    <p>${count(leaving.length, 'VM')} would leave, ${waiting.length} would leave later, ${stuck.length} cannot leave
      <span class="dim">(as seen ${when(snapshotTime)})</span>.</p>
    ${leaving.length === 0 ? '' : html`<p>Time: ${time === null ? 'unknown, because no policy allows a move' : expected(time)}${time === null || time.measured ? '' : `, ${ASSUMED_PACE}`}.</p>`}
    ${blockedBy === null ? '' : html`<p class="bad">Nothing would be done: ${blockedBy}.</p>`}
    ${holds.map((text) => html`<p class="warn">${said(text)}.</p>`)}
    ${disabled === null ? '' : html`<p class="warn">It is disabled already (${disabled.reason ?? 'no reason given'}): the end of the drain would not enable it.</p>`}
    ${servers('Would leave', leaving, [
      ['To', (vm) => html`<a href=${link.host(name, vm.to)}>${vm.to}</a>`],
      ['Memory', (vm) => memoryText(vm.ramMb), 'number'],
      ['GiB on disk', (vm) => figure(vm.diskGb, 0), 'number'],
      ['Takes', (vm) => expected(vm.duration), 'number'],
    ])}
    ${servers('Would leave later', waiting, [['Why', (vm) => vm.reason.text]])}
    ${servers('Cannot leave', stuck, [['Why', (vm) => vm.reason.text]])}
    ${byHand(`kronos drain ${own}`)}`;
}

/** One point is no course of time: the table has it. */
const LEAST_POINTS = 2;

/** A chart, and the same in words: where each value began, was lowest and highest, and is. */
function valuesOverTime(late) {
  if (late?.values === undefined) return pending('The recorded snapshots are read …');
  if (late.values.refused !== undefined) return missing(late.values.refused);
  const { times, policies, gone } = late.values;
  if (times.length === 0)
    return gone > 0
      ? missing({ status: 410 })
      : html`<p class="dim" data-state="missing">Nothing was decided in the last six hours.</p>`;
  const percents = (values) => values.map((value) => (value === null ? null : 100 * value));
  const lines = policies.map(({ policy, values }, i) => ({
    label: `${policy} in %`,
    values: percents(values),
    colour: `--c${i % 6}`,
    width: 1.5,
  }));
  const of = (row) => row.values.filter((value) => value !== null);
  return html`
    ${times.length < LEAST_POINTS ? '' : html`<div class="chart" aria-hidden="true" ${ref(drawn((element) => drawLines(element, { times, lines, utc: usesUtc() })))}></div>`}
    ${table(
      'Values over time',
      [
        ['Policy', (p) => p.policy],
        ['First', (p) => shareText(of(p)[0], 1), 'number'],
        ['Lowest', (p) => shareText(of(p).length === 0 ? null : Math.min(...of(p)), 1), 'number'],
        ['Highest', (p) => shareText(of(p).length === 0 ? null : Math.max(...of(p)), 1), 'number'],
        ['Last', (p) => shareText(of(p).at(-1), 1), 'number'],
      ],
      policies,
      'No policy has a value of this host.',
    )}
    <p class="dim">${count(times.length, 'snapshot')} since ${clockTime(times[0])}${gone === 0 ? '' : `; ${gone} more are no longer kept`}.</p>`;
}

/** Its place among the hosts, the highest first. */
const rank = (i, n) =>
  i === 0
    ? `the highest of ${count(n, 'host')}`
    : i === n - 1
      ? `the lowest of ${n} hosts`
      : `number ${i + 1} of ${n} hosts, from the highest`;

/** Where the host stands among the others, one skyline per policy; and its VMs by weight, as one bar. */
function standing({ policies, hosts }, seen, vms) {
  const width = Math.max(240, Math.min(innerWidth, 3840) - 64);
  const own = { width: Math.min(width, 560), height: 64 };
  const shown = policies.flatMap(({ policy, threshold }, i) => {
    const others = hosts
      .filter((host) => host.values[i] !== null && (counts(host) || host === seen))
      .toSorted((a, b) => b.values[i] - a.values[i]);
    const marked = others.indexOf(seen);
    return marked < 0 ? [] : [{ policy, threshold, i, marked, values: others.map(({ values }) => values[i]) }];
  });
  const scale = Math.max(0, ...shown.map(topOf));
  return shown.map((one) => {
    const { policy, i, marked, values } = one;
    return html`<figure class="stand"><figcaption>${policy}: <span class="ratio-now">${shareText(values[marked], 1)}</span> of the host, ${rank(marked, values.length)}</figcaption>
      ${skyline(one, { ...own, scale })}
      ${weights(policy, vms, i, Math.min(width, 560))}</figure>`;
  });
}

/** The VMs of the host as one bar, the heaviest first; more than these are one block. */
const MOST_BLOCKS = 40;
function weights(policy, { vms }, i, width) {
  const known = vms.filter((vm) => (vm.values[i] ?? 0) > 0).toSorted((a, b) => b.values[i] - a.values[i]);
  if (known.length === 0) return '';
  const sum = known.reduce((total, vm) => total + vm.values[i], 0);
  const shown = known.slice(0, MOST_BLOCKS);
  let x = 0;
  return html`<span class="dim">Its VMs, by their part of it:</span>
    <svg class="blocks" width=${width} height="22" viewBox=${`0 0 ${width} 22`} role="img" aria-label=${`${policy}: ${shown[0].name} weighs ${Math.round((100 * shown[0].values[i]) / sum)} % of ${count(known.length, 'VM')}`}>
    ${shown.map((vm) => {
      const size = (vm.values[i] / sum) * width;
      x += size;
      return svg`<rect class="vm even" x=${x - size} y="2" width=${Math.max(0.5, size - 1)} height="18"><title>${`${vm.name}: ${shareText(vm.values[i], 1)}`}</title></rect>
        ${size > 60 ? svg`<text x=${x - size + 4} y="15">${vm.name.length > size / 7 ? `${vm.name.slice(0, Math.floor(size / 7) - 1)}…` : vm.name}</text>` : ''}`;
    })}
  </svg>`;
}

/** The first rows of a long table; the others are shown when a person asks for them. */
const FIRST = 15;

/** The VMs of the host, the heaviest first. */
function vmsTable(name, vms, past, { view, choose }) {
  if (vms.refused !== undefined) return missing(vms.refused);
  const weight = (vm) => vm.values.reduce((sum, value) => sum + (value ?? 0), 0);
  const all = vms.vms.toSorted((a, b) => weight(b) - weight(a));
  const shown = view.allVms === true ? all : all.slice(0, FIRST);
  return html`${table(
    'VMs',
    [
      ['VM', (vm) => named(vm.name, vm.id, link.vm(name, vm.id, past))],
      ['Status', (vm) => vm.status],
      ['Flavor', (vm) => vm.flavor ?? 'unknown'],
      ['vCPUs', (vm) => vm.vcpus, 'number'],
      ['Memory', (vm) => memoryText(vm.ramMb), 'number'],
      ...vms.policies.map((policy, i) => [policy, (vm) => shareText(vm.values[i], 1), 'number']),
    ],
    shown,
    'No VM.',
  )}${shown.length === all.length ? '' : html`<p class="commands"><button type="button" @click=${() => choose({ ...view, allVms: true })}>Show all ${all.length} VMs</button></p>`}`;
}

/** The free part of a capacity, in words. */
const ofAll = (free, all, text) => (free === null ? 'unknown' : `${text(free)} of ${text(all)}`);

/** Its service, its values, its room, and whether it takes VMs. */
function placeFacts({ name, hosts, past }, seen, known) {
  if (hosts.refused !== undefined) return missing(hosts.refused);
  if (seen === undefined)
    return html`<p class="dim" data-state="missing">The ${past === null ? 'newest' : 'recorded'} snapshot of ${name} has no such host.</p>`;
  const { service, free, capacity } = seen;
  return facts([
    ['Service', `${service.status}, ${service.state}${service.forcedDown ? ', forced down' : ''}`],
    ...(service.disabledReason === null ? [] : [['Disabled because', service.disabledReason]]),
    ...(past === null ? [['Takes VMs', takes(seen, known)]] : []),
    ...(known?.drain == null || past !== null ? [] : [['Drain', known.drain.text]]),
    ['VMs', seen.vms],
    ...hosts.policies.map((policy, i) => [
      policy.policy,
      `${shareText(seen.values[i], 1)} (${heatWords(heat(seen.values[i], policy))})`,
    ]),
    ['Free vCPUs', ofAll(free.vcpus, capacity.vcpus, (n) => figure(n, 0))],
    ['Free memory', ofAll(free.ramMb, capacity.ramMb, memoryText)],
    ...(seen.zone === null ? [] : [['Zone', seen.zone]]),
    ['Measured', past === null ? when(hosts.snapshot.time) : clockTime(hosts.snapshot.time)],
  ]);
}

/** Whether it can be a destination. */
const takes = (seen, known) =>
  known?.brokenUntil != null
    ? html`no: moves to it failed; again ${when(known.brokenUntil)}`
    : !counts(seen) || known?.drain != null
      ? 'no'
      : 'yes';

/** The VMs that leave it and those that come, by the plan of the moment. */
function planned({ name, own, vms, past, plan, steps }) {
  const part = (some, text, end) =>
    some.length === 0
      ? ''
      : html` <strong>${count(some.length, 'VM')} ${text(some.length)}</strong> ${some.slice(0, MOST_NAMED).map((step, i) => html`${i === 0 ? '' : ', '}${step.serverName} ${end(step)}`)}${some.length > MOST_NAMED ? ` and ${some.length - MOST_NAMED} more` : ''}.`;
  // VMs that have moved are on their destinations.
  const here = new Set(vms.vms?.map(({ id }) => id));
  const out = steps.filter(({ from, serverId }) => from === own && here.has(serverId));
  const come = steps.filter(({ to, serverId }) => to === own && !here.has(serverId));
  if (out.length + come.length === 0) return '';
  const waits = past === null && !plan.runs;
  const host = (at) => html`<a href=${link.host(name, at, past)}>${at}</a>`;
  return html`<p class="planned">${part(
    out,
    (n) => (waits ? `${n === 1 ? 'waits' : 'wait'} to leave it:` : `${n === 1 ? 'leaves' : 'leave'} it:`),
    ({ to }) => html`→ ${host(to)}`,
  )}${part(
    come,
    (n) => (waits ? `${n === 1 ? 'waits' : 'wait'} to come:` : `${n === 1 ? 'comes' : 'come'}:`),
    ({ from }) => html`from ${host(from)}`,
  )} <a href=${link.plan(plan.id, plan.sequence)}>${PLAN_WORDS[past === null ? plan.state : 'past']}</a></p>`;
}
/** More VMs are counted: the plan has all. */
const MOST_NAMED = 8;
const PLAN_WORDS = {
  proposed: 'The plan that waits for approval',
  released: 'The plan that runs',
  dryRun: 'The plan of the dry run, which is not released',
  past: 'The plan of that moment',
};

/** When the moment was, as the story and the time bar say it; of a cycle that the ledger no longer has in memory, when it was measured. */
function atText(series, index, { snapshot }) {
  const time = momentOf(series, index)?.atMs ?? snapshot?.time;
  return time === undefined ? '' : ` at ${clockTime(time)}`;
}

/** One host, now or at a recorded moment (`?snapshot=`): its values, its VMs by weight, what happened to it. */
export const host = {
  title: ({ host: name }) => name,
  concerns: (change, { name }) => isAbout(change, name),
  async load({ name, host: own }, query) {
    const base = `/aggregates/${encodeURIComponent(name)}`;
    const snapshot = query.get('snapshot');
    const at = snapshot === null ? '' : `snapshot=${encodeURIComponent(snapshot)}`;
    const [page, series, hosts, vms, log] = await Promise.all([
      read(base),
      read(`${base}/imbalance${near(snapshot)}`),
      tryRead(`${base}/hosts?${at}`),
      tryRead(`${base}/vms?limit=1000&host=${encodeURIComponent(own)}&${at}`),
      tryRead(`/hosts/${encodeURIComponent(own)}`),
    ]);
    const { plan, steps } = await openPlan({ page, series }, snapshot);
    return { name, own, series, hosts, vms, log, past: snapshot, plan, steps };
  },
  async late({ name, host: own }, { view }) {
    const base = `/aggregates/${encodeURIComponent(name)}/hosts/${encodeURIComponent(own)}`;
    const [values, drain] = await Promise.all([
      readOrRefused(`${base}/values`),
      view.drain === true ? readOrRefused(`${base}/drain`) : undefined,
    ]);
    return { values, drain };
  },
  show(data, { late, view, choose, go, query }) {
    const { name, own, series, hosts, vms, log, past } = data;
    const index = indexOf(series, past);
    const goTo = (moment) => go(`${link.host(name, own)}${moment}`);
    const seen = hosts.hosts?.find((one) => one.name === own);
    const known = log.aggregates?.find((one) => one.aggregate === name);
    const kind = past === null ? undefined : 'past';
    return html`
      <div class="headline"><h1>${own}</h1>
        ${
          past === null
            ? ''
            : html`<p data-state="past" class="chip amber">As it was${atText(series, index, hosts)} ·
              <a href=${link.host(name, own)}>Show it now</a>,
              <a href=${link.aggregate(name, past)}>all hosts at that moment</a></p>`
        }<span class="push">in <a href=${link.aggregate(name)}>${name}</a></span>${pastStory(series, index, hosts)}</div>
      ${planned(data)}
      ${seen === undefined || vms.refused !== undefined ? '' : section('Among the hosts', html`<div class="compare">${standing(hosts, seen, vms)}</div>`, kind)}
      ${section(past === null ? 'Now' : 'At that moment', placeFacts(data, seen, known), kind)}
      ${series.times.length === 0 ? '' : section('Time', html`<p class="dim">All hosts of ${name}: the values of this one over time are below.</p>${timeBar(series, index, { query, go: goTo, marks: planMarks(name, series) })}`, kind)}
      ${section('VMs by weight', vmsTable(name, vms, past, { view, choose }))}
      ${section('Values over time', valuesOverTime(late))}
      ${
        seen === undefined || past !== null
          ? ''
          : section(
              'Drain',
              html`${drainPreview(name, late, view, choose)}${hostCommands(name, own, known?.drain != null)}`,
            )
      }
      ${movesNow(known, name, past)}
      ${section('Recent events', log.refused === undefined ? eventsTable(log.events) : html`<p class="dim">The log says nothing recent about it.</p>`)}`;
  },
};
