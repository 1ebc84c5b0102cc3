/** Keys: each presses a button or follows a link that the page has, so that nothing is possible by keys alone. */
import { closeDialog, openDialog } from './dialog.js';
import { html } from './lib/lit-html.js';
import { openPalette } from './palette.js';

const content = document.getElementById('content');

/** Key to the `data-key` of a button or link of the view. */
const PRESSES = {
  ArrowLeft: 'Back',
  ArrowRight: 'Forward',
  'Shift+ArrowLeft': 'PreviousPlan',
  'Shift+ArrowRight': 'NextPlan',
  Home: 'Oldest',
  Escape: 'Now',
  End: 'Now',
  ' ': 'Play',
  '+': 'ZoomIn',
  '-': 'ZoomOut',
  0: 'Whole',
  a: 'Review',
  p: 'Pause',
  w: 'WhatIf',
};
const HELP = [
  ['/', 'go to a host, VM, plan or view'],
  ['j  k', 'next and previous row; Enter opens it'],
  ['←  →', 'one cycle back and forward'],
  ['Shift ←  →', 'to the plan before and after'],
  ['Home  End', 'the oldest cycle, and now'],
  ['+  −  0', 'show less of the time, more of it, all of it'],
  ['t', 'go to a time: 03:00, yesterday 14:00, 2h'],
  ['Space', 'play'],
  ['Esc', 'back to now'],
  ['a', 'review the plan; there, approve it after a confirmation'],
  ['w', 'what if'],
  ['p', 'pause or resume the aggregate, after a confirmation'],
  ['?', 'this help'],
];

const help = () =>
  openDialog().draw(
    'Keys',
    html`<dl class="keys" data-help>${HELP.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
      <p class="commands"><button type="button" @click=${closeDialog}>Close</button></p>`,
  );

/** The field for a time where the view has one; else the palette, which takes a time too. */
function askTime() {
  const field = content.querySelector('[data-key="Time"]');
  if (field === null) openPalette();
  else field.focus();
  return true;
}

/** To the next row that leads on, from the one with the focus. */
function row(step) {
  const links = [...content.querySelectorAll('tbody th a, tbody td:first-child a, .host-rows a')];
  if (links.length === 0) return false;
  const now = links.indexOf(document.activeElement);
  links[now < 0 ? (step > 0 ? 0 : links.length - 1) : Math.max(0, Math.min(links.length - 1, now + step))].focus();
  return true;
}

function press(event) {
  const name = PRESSES[`${event.shiftKey ? 'Shift+' : ''}${event.key}`];
  const button = name === undefined ? null : content.querySelector(`[data-key="${name}"]:not([disabled])`);
  button?.click();
  return button !== null;
}

/** Space and Enter press what has the focus; the other keys that write nothing scroll it where it can be scrolled. */
const ownUse = (target, key) =>
  key === ' ' || key === 'Enter'
    ? target.closest?.('button, a, summary, [tabindex="0"]') != null
    : key.length > 1 && key !== 'Escape' && target.closest?.('[tabindex="0"]') != null;

/** Does what the key stands for. @returns whether it stands for something here */
function act(event) {
  const { target, key } = event;
  if (key === '/') openPalette();
  else if (key === '?') help();
  else if (key === 't') return askTime();
  else if (key === 'j' || key === 'k') return row(key === 'j' ? 1 : -1);
  else return !ownUse(target, key) && press(event);
  return true;
}

addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.key === '?' && document.querySelector('#dialog[open] [data-help]') !== null) {
    closeDialog();
    event.preventDefault();
    return;
  }
  // The focus may still be in a dialog that is closed.
  const { target } = event;
  if (target.closest?.('dialog:not([open])') == null && target.closest?.('input, select, textarea, dialog') != null)
    return;
  if (act(event)) event.preventDefault();
});

document.getElementById('keys').addEventListener('click', help);
