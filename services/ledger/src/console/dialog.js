/** The one dialog of the page. The browser keeps the focus in it, closes it with Escape and returns the focus after it. */
import { html, render } from './lib/lit-html.js';

const element = document.getElementById('dialog');
/** The use of the dialog under way; null: it is closed. */
let current = null;

function end() {
  current = null;
  // An element with the focus that is only hidden would still take the next key.
  render('', element);
}
// The browser tells later that it is closed: by then another use may have opened it.
element.addEventListener('close', () => {
  if (!element.open) end();
});

export function closeDialog() {
  element.close();
  end();
}

/** Begins a use of the dialog. `draw` shows a title and a content, `close` ends it; both do nothing once it is closed, in whatever way. */
export function openDialog() {
  const own = {};
  current = own;
  let drawn = false;
  const over = () => current !== own || (drawn && !element.open);
  return {
    draw(title, content) {
      if (over()) return;
      drawn = true;
      render(html`<h2 id="dialog-title">${title}</h2>${content}`, element);
      if (!element.open) element.showModal();
      // The element with the focus may be gone with the content before.
      if (!element.contains(document.activeElement)) element.querySelector('input, button')?.focus();
    },
    close() {
      if (!over()) closeDialog();
    },
  };
}

/** Why something was not done; read out at once. */
export const problem = (text) => html`<p class="bad" role="alert">${text ?? ''}</p>`;
