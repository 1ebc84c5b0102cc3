/** The buttons of commands, and the confirmation: what a command would do, and the digest that stands for it. */

import { ALL } from './concerns.js';
import { closeDialog, openDialog, problem } from './dialog.js';
import { html, nothing } from './lib/lit-html.js';
import { canLogIn, cellTargets, foresee, give, isCustodian, person } from './session.js';

/** The words of a field, separated by commas or blanks. */
const split = (text) => text.split(/[\s,]+/).filter((part) => part !== '');

/** Numbers of steps as a person types them; null: all of them; undefined: they are wrong. */
function stepsOf(text) {
  if (text.trim() === '') return null;
  const numbers = split(text);
  return numbers.every((part) => /^[1-9]\d{0,4}$/.test(part)) ? numbers.map(Number) : undefined;
}

/** A field of names, null where it is empty. */
const words = (label, become) => html`<label class="field">${label}
  <input type="text" maxlength="2000" @change=${(event) => {
    const found = split(event.target.value);
    become(found.length === 0 ? null : found);
  }}></label>`;

/** The choices in the confirmation: each gives the command anew. */
const choices = {
  steps: (command, choose) => html`<label class="field">Only these steps (such as 1, 3; nothing: all)
    <input type="text" inputmode="numeric" maxlength="500" @change=${(event) => {
      const steps = stepsOf(event.target.value);
      event.target.setCustomValidity(steps === undefined ? 'Write step numbers, such as 1, 3.' : '');
      if (steps === undefined) event.target.reportValidity();
      else choose({ ...command, steps });
    }}></label>`,
  seconds: (command, choose) => html`<label class="field">For
    <select @change=${(event) => choose({ ...command, seconds: Number(event.target.value) })}>
      ${[
        [-1, 'until it is released'],
        [3_600, '1 hour'],
        [28_800, '8 hours'],
        [86_400, '1 day'],
        [604_800, '7 days'],
      ].map(([seconds, text]) => html`<option value=${seconds}>${text}</option>`)}</select></label>`,
  force: (command, choose) => html`<p><label><input type="checkbox"
    @change=${(event) => choose({ ...command, force: event.target.checked })}>
    Without an abort, and although Nova may still move the VM</label></p>`,
  newer: (command, choose) => html`<p><label><input type="checkbox"
    @change=${(event) => choose({ ...command, force: event.target.checked })}>
    Also if a newer version of Kronos may read it</label></p>`,
  cells: (command, choose) => html`
    <label class="field">To the aggregate
      <select @change=${(event) => choose({ ...command, to: event.target.value })}>
        ${cellTargets(command.aggregate).map((to) => html`<option>${to}</option>`)}</select></label>
    <label class="field">At most this many moves (nothing: as many as a plan holds)
      <input type="number" min="1" max="100000" @change=${(event) => {
        if (event.target.reportValidity())
          choose({ ...command, limit: event.target.value === '' ? null : Number(event.target.value) });
      }}></label>
    ${words('Only these servers (uuids or names; nothing: all)', (servers) => choose({ ...command, servers }))}
    ${words('Only servers of this project (nothing: all)', (own) => choose({ ...command, project: own?.[0] ?? null }))}
    <label class="field">Other flavors (such as old.small=new.small; nothing: the same)
      <input type="text" maxlength="2000" @change=${(event) => {
        const pairs = split(event.target.value).map((pair) => pair.split('='));
        const right = pairs.every((pair) => pair.length === 2 && pair.every((part) => part !== ''));
        event.target.setCustomValidity(right ? '' : 'Write OLD=NEW, separated by commas.');
        if (right) choose({ ...command, flavorMap: Object.fromEntries(pairs) });
        else event.target.reportValidity();
      }}></label>`,
};

/** Asks the person to confirm a command, after they have read what it would do. */
function confirmCommand(heading, label, first, choice) {
  let command = first;
  /** `read`: the answer that is shown; `told`: what was done. */
  let shown = { read: null, told: null, error: null, busy: true };
  let asked = 0;
  const dialog = openDialog();
  const become = (next) => {
    shown = { ...shown, ...next };
    dialog.draw(heading, content());
  };
  const ask = async (error = null) => {
    asked++;
    const own = asked;
    become({ read: null, busy: true, error });
    try {
      const read = await foresee(command);
      if (own === asked) become({ read, busy: false });
    } catch (refused) {
      if (own === asked)
        become({ busy: false, error: [error, refused.message].filter((one) => one !== null).join(' ') });
    }
  };
  const submit = async (event) => {
    event.preventDefault();
    const { read, busy } = shown;
    if (busy || read === null || read.effect === 'refused') return;
    const { comment } = Object.fromEntries(new FormData(event.target));
    become({ busy: true, error: null });
    try {
      become({ told: await give(command, read.digest, comment.trim() === '' ? null : comment), busy: false });
    } catch (refused) {
      // The facts have changed: the person reads them anew before they confirm again.
      if (refused.status === 409) await ask(refused.message);
      else become({ busy: false, error: refused.message });
    }
  };
  const content = () => {
    const { read, told, error, busy } = shown;
    if (told !== null)
      return html`<p role="status" class=${told.effect === 'refused' ? 'bad' : 'good'}>${told.text}</p>
        <p class="dim">Recorded as event ${told.sequence} by ${told.by}.</p>
        <p class="commands"><button type="button" @click=${closeDialog}>Close</button></p>`;
    const impossible = read?.effect === 'refused';
    return html`<form @submit=${submit}>
      <div aria-live="polite">${
        read === null
          ? html`<p class="dim">${busy ? 'Reading what it would do …' : ''}</p>`
          : html`<p>${read.effect === 'done' ? 'This will happen:' : read.effect === 'unchanged' ? 'Nothing would change:' : 'It is not possible:'}</p>
            <ul class="plain">${read.says.map((line) => html`<li>${line}</li>`)}</ul>
            <dl>${read.planId === null ? '' : html`<div><dt>Plan</dt><dd><code>${read.planId}</code></dd></div>`}
              <div><dt>Digest</dt><dd><code>${read.digest}</code></dd></div></dl>`
      }</div>
      ${
        choice === undefined
          ? ''
          : choices[choice](command, (next) => {
              command = next;
              void ask();
            })
      }
      <label class="field">${command.command === 'skip' ? 'Reason, shown permanently' : 'Comment, recorded with it'}
        <input name="comment" type="text" maxlength="1000" autocomplete="off" ?required=${command.command === 'skip'}></label>
      ${problem(error)}
      <p class="commands"><button type="submit" ?disabled=${impossible} aria-disabled=${busy || read === null}>${label}</button>
        <button type="button" @click=${closeDialog}>Go back</button></p>
    </form>`;
  };
  void ask();
}

/** A button. `about` tells buttons of the same text apart; `of` stands in the heading of the confirmation only. */
function button(title, command, { choice, about, of, key, first = false } = {}) {
  const label = about === undefined ? title : `${title} ${about}`;
  const heading = of === undefined ? label : `${title} ${of}`;
  return html`<button type="button" class=${first ? 'primary' : nothing} aria-label=${label} data-key=${key ?? nothing}
    @click=${() => confirmCommand(heading, label, command, choice)}>${title}</button>`;
}

/** Nothing where nobody is logged in. */
const group = (...buttons) => (person() === null ? '' : html`<div class="commands">${buttons}</div>`);

/** The same as commands for a shell, where nobody is logged in, and why there are no buttons. */
export const byHand = (...commands) =>
  person() !== null
    ? ''
    : html`<p class="by-hand">${commands.map((command) => html`<code>${command}</code> `)}<span class="dim">${canLogIn() ? 'Or log in, above.' : 'In a shell: this console has no log-in ([console] acting).'}</span></p>`;

/** The meaning of each word on a button. */
const MEANINGS = {
  cancel: 'Cancel: a move that has not started is given up',
  abort: 'Abort: Nova stops the move, and the VM stays where it is',
  close: 'Close: Kronos asks Nova to abort the move, and ends a task that nothing else ends',
  evaluate: 'Evaluate now: a snapshot is taken and decided at once',
  record: 'Record a snapshot: one is kept that nothing is planned from',
  cells: 'Another cell: hosts that Nova reaches only by cold migration, so the VM restarts',
  pause: 'Pause: nothing is planned and no further move starts; moves under way go on',
};
export const meanings = (...words) =>
  person() === null ? '' : html`<p class="dim meanings">${words.map((word) => MEANINGS[word]).join('. ')}.</p>`;

export const fleetCommands = () =>
  group(
    button('Pause all', { command: 'pause', aggregate: ALL }),
    button('Resume all', { command: 'resume', aggregate: ALL }),
    button('Evaluate all', { command: 'evaluate', aggregate: ALL }),
    button('Record all', { command: 'record', aggregate: ALL }),
  );

/** Nothing where `[cells] aggregates` does not name the aggregate. */
function cellsButton(aggregate, host) {
  const [to] = cellTargets(aggregate);
  if (to === undefined) return '';
  const all = { flavorMap: {}, servers: null, project: null, limit: null };
  const command = { command: 'cellsPlan', aggregate, host, to, ...all };
  return button('Plan moves to another cell', command, { choice: 'cells', of: `from ${host ?? aggregate}` });
}

/** `unreadable`: the first event that keeps the aggregate from being planned; null: none does. */
function skipButton(unreadable) {
  if (unreadable === null || !isCustodian()) return '';
  const { sequence, through } = unreadable;
  const events = through === sequence ? `event ${sequence}` : `events ${sequence} to ${through}`;
  return button(`Skip ${events}`, { command: 'skip', sequence, through, force: false }, { choice: 'newer' });
}

export const aggregateCommands = ({ name, paused, unreadable }) =>
  group(
    paused.here === null
      ? button('Pause', { command: 'pause', aggregate: name }, { of: name, key: 'Pause' })
      : button('Resume', { command: 'resume', aggregate: name }, { of: name, key: 'Pause' }),
    button('Evaluate now', { command: 'evaluate', aggregate: name }, { of: `(${name})` }),
    button('Record a snapshot', { command: 'record', aggregate: name }, { of: `of ${name}` }),
    cellsButton(name, null),
    skipButton(unreadable),
  );

/** Commands for the palette: "pause" or "resume" and the name of an aggregate. Nothing where nobody is logged in. */
export const pauseFromPalette = (text, aggregate) =>
  ['pause', 'resume']
    .filter((command) => person() !== null && text.startsWith(`${command} `))
    .map((command) => ({
      label: `${command === 'pause' ? 'Pause' : 'Resume'} ${aggregate}`,
      note: 'command',
      go: () =>
        confirmCommand(
          `${command === 'pause' ? 'Pause' : 'Resume'} ${aggregate}`,
          command === 'pause' ? 'Pause' : 'Resume',
          { command, aggregate },
        ),
    }));

/** Of a plan that runs. */
export const pauseCommand = (name) =>
  group(button('Pause', { command: 'pause', aggregate: name }, { of: name, key: 'Pause' }));

export const resumeCommand = (name) => group(button('Resume', { command: 'resume', aggregate: name }, { of: name }));

/** `steps`: those that the person has chosen; null: all. `all`: how many there are. `first`: to approve it is what the page is for. */
export const planCommands = (planId, { steps = null, all = 0, first = false } = {}) =>
  group(
    steps === null
      ? button(
          'Approve',
          { command: 'approve', planId, steps: null },
          { choice: 'steps', of: `the plan ${planId}`, first, ...(first ? { key: 'Review' } : {}) },
        )
      : button(
          `Approve ${steps.length} of ${all} moves`,
          { command: 'approve', planId, steps },
          { of: `of the plan ${planId}`, first },
        ),
    button('Reject', { command: 'reject', planId, steps: null }, { choice: 'steps', of: `the plan ${planId}` }),
  );

/** A move between cells (phase `cell`) waits in Nova until somebody confirms or reverts it. */
export function moveCommands({ id: taskId, started, ended, serverName, phase }) {
  if (ended !== null) return '';
  const about = `the move of ${serverName}`;
  if (started === null) return group(button('Cancel', { command: 'cancel', taskId }, { about }));
  return group(
    ...(phase === 'cell'
      ? [
          button('Confirm', { command: 'confirm', taskId }, { about }),
          button('Revert', { command: 'revert', taskId }, { about }),
        ]
      : []),
    button('Abort', { command: 'abort', taskId }, { about }),
    button('Close', { command: 'close', taskId, force: false }, { choice: 'force', about }),
  );
}

export const releaseCommand = (serverId, about) =>
  group(button('Release', { command: 'release', serverId }, { about }));

/** `of`: the VM's name. */
export const vmCommands = (aggregate, serverId, quarantined, of) =>
  group(
    button('Quarantine', { command: 'quarantine', aggregate, serverId, seconds: -1 }, { choice: 'seconds', of }),
    ...(quarantined ? [button('Release', { command: 'release', serverId }, { of })] : []),
  );

const drainButton = (aggregate, host) => button('Drain', { command: 'drain', aggregate, host }, { about: host });
export const drainCommand = (aggregate, host) => group(drainButton(aggregate, host));
/** `about`: tells it apart from those of other hosts on the page. */
const undrainButton = (host, about) =>
  button(
    'End the drain',
    { command: 'undrain', host },
    about === undefined ? { of: `of ${host}` } : { about: `of ${about}` },
  );
export const undrainCommand = (host, about) => group(undrainButton(host, about));

export const hostCommands = (aggregate, host, draining) =>
  group(draining ? undrainButton(host) : drainButton(aggregate, host), cellsButton(aggregate, host));
