// The views of an evidence file: every recorded decision again, the reader's own questions, and what another option decides.

/** An element with text or children. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}
const table = (heads, rows) =>
  make(
    'table',
    {},
    make('thead', {}, make('tr', {}, ...heads.map((head) => make('th', { scope: 'col' }, head)))),
    make(
      'tbody',
      {},
      ...rows.map((cells) =>
        make('tr', {}, ...cells.map((cell) => (cell instanceof HTMLTableCellElement ? cell : make('td', {}, cell)))),
      ),
    ),
  );
const number = (value) => make('td', { class: 'n' }, value === null || value === undefined ? '-' : value.toFixed(3));
const minute = (time) => `${time.slice(0, 16).replace('T', ' ')} UTC`;
/** Lets the page draw. */
const breathe = () => new Promise((resolve) => setTimeout(resolve));

function patched(before, patch) {
  if (patch === null) return before;
  const [kind, value] = patch;
  if (kind === '=') return value;
  if (kind === 'a') {
    const list = [...before];
    for (const [i, one] of Object.entries(value)) list[i] = patched(list[i], one);
    return list;
  }
  return Object.fromEntries(Object.entries(before).map(([key, one]) => [key, patched(one, value[key] ?? null)]));
}

function snapshotsIn(text) {
  const last = new Map();
  const found = new Map();
  for (const { id, aggregate, patch } of JSON.parse(text)) {
    const body = patched(last.get(aggregate), patch);
    last.set(aggregate, body);
    found.set(id, body);
  }
  return found;
}

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
      different.push(`${snapshotId} (${minute(cycle.snapshot.time)})`);
  }
  return different;
}

const signatureText = ({ kind, publicKey }) =>
  ({
    none: 'It is not signed.',
    signed: `It is signed by the key ${publicKey}.`,
    unable: 'It is signed; this browser cannot check the signature: kronos evidence verify can.',
  })[kind];

function planView(decision) {
  const { plan, reason, before } = decision;
  const after = new Map((plan?.after.policies ?? []).map((one) => [one.policy, one.imbalance]));
  return make(
    'div',
    {},
    make('p', {}, `${decision.outcome}: ${reason.text}`),
    table(
      ['policy', 'threshold', 'imbalance', 'with the plan'],
      before.policies.map(({ policy, threshold, imbalance }) => [
        policy,
        number(threshold),
        number(imbalance),
        number(after.get(policy) ?? imbalance),
      ]),
    ),
    ...(plan === null
      ? []
      : [
          table(
            ['', 'VM', 'from', 'to', 'why'],
            plan.steps.map(({ step, serverName, from, to, why }) => [
              String(step),
              serverName,
              from,
              to,
              why?.text ?? '',
            ]),
          ),
        ]),
  );
}

function hostsView(core, { snapshot }, away, onAway) {
  const { policies } = core.score({ ...snapshot, options: { balance: true } });
  const vms = Map.groupBy(snapshot.servers, ({ host }) => host);
  return table(
    ['host', 'VMs', ...policies.map(({ policy }) => policy), 'take away'],
    snapshot.hosts.map(({ name, service }) => {
      const box = make('input', {
        type: 'checkbox',
        'aria-label': `take ${name} away`,
        onchange: (event) => onAway(name, event.target.checked),
      });
      box.checked = away.has(name);
      return [
        make(
          'th',
          { scope: 'row' },
          service.status === 'enabled' && service.state === 'up'
            ? name
            : `${name} (${service.status}, ${service.state})`,
        ),
        make('td', { class: 'n' }, String(vms.get(name)?.length ?? 0)),
        ...policies.map(({ hosts }) => {
          const raw = hosts[name]?.raw;
          return raw === undefined
            ? '-'
            : make(
                'td',
                {},
                make('meter', { min: '0', max: '1', value: String(raw), title: raw.toFixed(3) }),
                ` ${raw.toFixed(3)}`,
              );
        }),
        make('td', {}, box),
      ];
    }),
  );
}

/** The recorded input with the reader's changes. */
function changed({ snapshot, state }, { policies, away }, core) {
  const hosts = snapshot.hosts.map((host) =>
    away.has(host.name)
      ? { ...host, service: { ...host.service, status: 'disabled', disabledReason: 'taken away' } }
      : host,
  );
  const own = snapshot.policies.map((policy) => ({ ...policy, ...policies.get(policy.name) }));
  return core.decideInput(state, { ...snapshot, hosts, policies: own });
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
  const cycles = cyclesIn(core, snapshotsIn(parts.snapshots), eventsIn(files));
  const different = await decideAgain(page, cycles);
  state.textContent =
    different.length === 0
      ? `Each of the ${cycles.length} decisions was made again here, and has the recorded digest. ${signatureText(signature)}`
      : `${different.length} of ${cycles.length} decisions differ from the recorded ones: ${different.slice(0, 10).join(', ')}.`;
  state.className = different.length === 0 ? 'good' : 'bad';
  const main = document.getElementById('main');
  const change = { policies: new Map(), away: new Set() };
  let at = cycles.length - 1;

  const slider = make('input', {
    type: 'range',
    min: '0',
    max: String(cycles.length - 1),
    value: String(at),
    'aria-label': 'time',
    oninput: () => go(Number(slider.value)),
  });
  const time = make('output', { id: 'time' });
  const hosts = make('section', { 'aria-label': 'hosts' });
  const recorded = make('section', { 'aria-label': 'recorded' });
  const other = make('section', { 'aria-label': 'with your changes' });
  const form = make('form', {
    onsubmit: (event) => {
      event.preventDefault();
      decideOther();
    },
  });

  const field = (policy, key, title, step) => {
    const input = make('input', {
      type: 'number',
      min: '0',
      step,
      value: String(policy[key]),
      'aria-label': `${title} of ${policy.name}`,
    });
    input.addEventListener('input', () => {
      const value = Number(input.value);
      if (input.value === '' || !Number.isFinite(value) || value < 0) return;
      change.policies.set(policy.name, { ...change.policies.get(policy.name), [key]: value });
    });
    return make('label', {}, `${policy.name}: ${title}`, input);
  };

  function decideOther() {
    const decision = core.decide(changed(cycles[at], change, core));
    other.replaceChildren(make('h2', {}, 'With your changes'), planView(decision));
  }
  function go(to) {
    at = to;
    const cycle = cycles[at];
    time.textContent = `${minute(cycle.snapshot.time)}, ${cycle.event.aggregate}`;
    hosts.replaceChildren(
      make('h2', {}, 'Hosts'),
      hostsView(core, cycle, change.away, (name, gone) => {
        if (gone) change.away.add(name);
        else change.away.delete(name);
      }),
    );
    recorded.replaceChildren(make('h2', {}, 'As it was decided'), planView(cycle.decision));
    other.replaceChildren();
  }
  form.append(
    ...cycles[at].snapshot.policies.flatMap((policy) => [
      field(policy, 'threshold', 'threshold', '0.01'),
      field(policy, 'weight', 'weight', '0.05'),
      field(policy, 'maxMigrationsPerCycle', 'moves a cycle', '1'),
    ]),
    make('button', { type: 'submit' }, 'Decide with these'),
  );
  main.append(
    make(
      'p',
      {},
      `${manifest.aggregates.join(', ')}, ${minute(manifest.since)} to ${minute(manifest.until)}; planner ${manifest.plannerVersion}${manifest.anonymized ? '; names were replaced' : ''}.`,
    ),
    make('label', {}, 'Time', slider),
    time,
    make('div', { class: 'two' }, recorded, other),
    make('h2', {}, 'Change something'),
    form,
    hosts,
  );
  go(at);
  document.documentElement.dataset.state = different.length === 0 ? 'agrees' : 'differs';
}
