import { read, readOrRefused, tryRead } from '../api.js';
import { drawLines, drawn } from '../chart.js';
import { byHand, hostCommands } from '../commands.js';
import { ref } from '../lib/directives/ref.js';
import { html, svg } from '../lib/lit-html.js';
import { planMarks } from '../marks.js';
import { indexOf, pastStory } from '../moment.js';
import {
  ASSUMED_PACE,
  clockTime,
  count,
  eventsTable,
  expected,
  facts,
  figure,
  heat,
  heatWords,
  link,
  memoryText,
  missing,
  movesNow,
  named,
  pending,
  said,
  section,
  table,
  usesUtc,
  when,
} from '../parts.js';
import { counts } from '../ratio.js';
import { skyline } from '../skyline.js';
import { timeBar, withQuery } from '../timeBar.js';

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

/** A chart, and the same in words: where each value began, was lowest and highest, and is. */
function valuesOverTime(late) {
  if (late?.values === undefined) return pending('The recorded snapshots are read …');
  if (late.values.refused !== undefined) return missing(late.values.refused);
  const { times, policies, gone } = late.values;
  if (times.length === 0)
    return gone > 0
      ? missing({ status: 410 })
      : html`<p class="dim" data-state="missing">Nothing was decided in the last six hours.</p>`;
  const lines = policies.map(({ policy, values }, i) => ({ label: policy, values, colour: `--c${i % 6}`, width: 1.5 }));
  const of = (row) => row.values.filter((value) => value !== null);
  return html`
    <div class="chart" aria-hidden="true" ${ref(drawn((element) => drawLines(element, { times, lines, utc: usesUtc() })))}></div>
    ${table(
      'Values over time',
      [
        ['Policy', (p) => p.policy],
        ['First', (p) => figure(of(p)[0]), 'number'],
        ['Lowest', (p) => figure(of(p).length === 0 ? null : Math.min(...of(p))), 'number'],
        ['Highest', (p) => figure(of(p).length === 0 ? null : Math.max(...of(p))), 'number'],
        ['Last', (p) => figure(of(p).at(-1)), 'number'],
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
  return policies.map((policy, i) => {
    const others = hosts
      .filter((host) => host.values[i] !== null && (counts(host) || host === seen))
      .toSorted((a, b) => b.values[i] - a.values[i]);
    const marked = others.indexOf(seen);
    if (marked < 0) return '';
    const values = others.map(({ values: of }) => of[i]);
    return html`<figure class="stand"><figcaption>${policy.policy}: <span class="ratio-now">${figure(values[marked])}</span>, ${rank(marked, values.length)}</figcaption>
      ${skyline({ policy: policy.policy, threshold: policy.threshold, values, marked }, own)}
      ${weights(policy.policy, vms, i, Math.min(width, 560))}</figure>`;
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
  return html`<svg class="blocks" width=${width} height="22" viewBox=${`0 0 ${width} 22`} role="img" aria-label=${`${policy}: ${shown[0].name} weighs ${Math.round((100 * shown[0].values[i]) / sum)} % of ${count(known.length, 'VM')}`}>
    ${shown.map((vm) => {
      const size = (vm.values[i] / sum) * width;
      x += size;
      return svg`<rect class="vm even" x=${x - size} y="2" width=${Math.max(0.5, size - 1)} height="18"><title>${`${vm.name}: ${figure(vm.values[i])}`}</title></rect>
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
      ...vms.policies.map((policy, i) => [policy, (vm) => figure(vm.values[i]), 'number']),
    ],
    shown,
    'No VM.',
  )}${shown.length === all.length ? '' : html`<p class="commands"><button type="button" @click=${() => choose({ ...view, allVms: true })}>Show all ${all.length} VMs</button></p>`}`;
}

/** Its service, its values, its room, and whether it takes VMs. */
function placeFacts({ name, hosts, past }, seen, known) {
  if (hosts.refused !== undefined) return missing(hosts.refused);
  if (seen === undefined)
    return html`<p class="dim" data-state="missing">The ${past === null ? 'newest' : 'recorded'} snapshot of ${name} has no such host.</p>`;
  const { service, free } = seen;
  return facts([
    ['Service', `${service.status}, ${service.state}${service.forcedDown ? ', forced down' : ''}`],
    ...(service.disabledReason === null ? [] : [['Disabled because', service.disabledReason]]),
    ...(past === null ? [['Takes VMs', takes(seen, known)]] : []),
    ...(known?.drain == null || past !== null ? [] : [['Drain', known.drain.text]]),
    ['VMs', seen.vms],
    ...hosts.policies.map((policy, i) => [
      policy.policy,
      `${figure(seen.values[i])} (${heatWords(heat(seen.values[i], policy))})`,
    ]),
    ['Free vCPUs', figure(free.vcpus, 0)],
    ['Free memory', free.ramMb === null ? 'unknown' : memoryText(free.ramMb)],
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

/** One host, now or at a recorded moment (`?snapshot=`): its values, its VMs by weight, what happened to it. */
export const host = {
  title: ({ host: name }) => name,
  concerns: (change, { name }) => change.aggregate === name || change.aggregate === '_all_',
  async load({ name, host: own }, query) {
    const base = `/aggregates/${encodeURIComponent(name)}`;
    const snapshot = query.get('snapshot');
    const at = snapshot === null ? '' : `snapshot=${encodeURIComponent(snapshot)}`;
    const [series, hosts, vms, log] = await Promise.all([
      read(`${base}/imbalance${snapshot === null ? '' : `?near=${encodeURIComponent(snapshot)}`}`),
      tryRead(`${base}/hosts?${at}`),
      tryRead(`${base}/vms?limit=1000&host=${encodeURIComponent(own)}&${at}`),
      tryRead(`/hosts/${encodeURIComponent(own)}`),
    ]);
    return { name, own, series, hosts, vms, log, past: snapshot };
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
    const goTo = (to, time) =>
      go(`${link.host(name, own)}${withQuery(query, { snapshot: series.snapshotIds[to], time })}`);
    const seen = hosts.hosts?.find((one) => one.name === own);
    const known = log.aggregates?.find((one) => one.aggregate === name);
    const kind = past === null ? undefined : 'past';
    return html`
      <div class="headline"><h1>${own}</h1>
        ${
          past === null
            ? ''
            : html`<p data-state="past" class="chip amber">As it was${hosts.snapshot === undefined ? '' : ` at ${clockTime(hosts.snapshot.time)}`} ·
              <a href=${link.host(name, own)}>Show it now</a>,
              <a href=${link.aggregate(name, past)}>all hosts at that moment</a></p>`
        }<span class="push">in <a href=${link.aggregate(name)}>${name}</a></span>${pastStory(series, index, hosts)}</div>
      ${seen === undefined || vms.refused !== undefined ? '' : section('Among the hosts', html`<div class="compare">${standing(hosts, seen, vms)}</div>`, kind)}
      ${section(past === null ? 'Now' : 'At that moment', placeFacts(data, seen, known), kind)}
      ${series.times.length === 0 ? '' : section('Time', timeBar(series, index, { query, go: goTo, marks: planMarks(name, series) }), kind)}
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
