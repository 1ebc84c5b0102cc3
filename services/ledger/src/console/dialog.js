/** The one dialog of the page. The browser keeps the focus in it, closes it with Escape and returns the focus after it. */
import { html, render } from './lib/lit-html.js';

const element = document.getElementById('dialog');
let ended = () => undefined;
element.addEventListener('close', () => {
  render('', element);
  ended();
});

export const closeDialog = () => element.close();

/** Draws the content; the first time it opens the dialog. `onEnd`: it was closed, in whatever way. */
export function showDialog(title, content, onEnd) {
  if (onEnd !== undefined) ended = onEnd;
  render(html`<h2 id="dialog-title">${title}</h2>${content}`, element);
  if (!element.open) element.showModal();
  // The element with the focus may be gone with the content before.
  if (!element.contains(document.activeElement)) element.querySelector('input, button')?.focus();
}

/** Why something was not done; read out at once. */
export const problem = (text) => html`<p class="bad" role="alert">${text ?? ''}</p>`;
