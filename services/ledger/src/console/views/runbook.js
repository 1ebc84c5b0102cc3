import { read } from '../api.js';
import { html } from '../lib/lit-html.js';

const words = (text) => text.split(/`([^`]+)`/).map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : part));

/** Paragraphs, lists and blocks of code: as much of Markdown as the runbook uses. */
function rendered(markdown) {
  const blocks = markdown.split(/^```.*\n([\s\S]*?)^```$/m);
  return blocks.map((block, i) =>
    i % 2 === 1
      ? html`<pre tabindex="0">${block}</pre>`
      : block
          .split(/\n\n+/)
          .filter((part) => part.trim() !== '')
          .map((part) =>
            /^[-*] /.test(part)
              ? html`<ul>${part
                  .split(/^[-*] /m)
                  .filter((item) => item.trim() !== '')
                  .map((item) => html`<li>${words(item)}</li>`)}</ul>`
              : html`<p>${words(part)}</p>`,
          ),
  );
}

/** Back to the view that led here; the fleet where none did. */
function back(event) {
  if (history.length <= 1) return;
  event.preventDefault();
  history.back();
}

/** The remedy of an alarm: a section of the runbook. */
export const runbook = {
  title: () => 'Runbook',
  concerns: () => false,
  load: ({ section }) => read(`/runbook/${encodeURIComponent(section)}`),
  show({ text }) {
    const [head, ...rest] = text.split('\n');
    return html`<p><a href="#/" @click=${back}>← Back</a></p><h1>${head.replace(/^#+ /, '')}</h1>
      <section aria-label="Runbook">${rendered(rest.join('\n'))}</section>`;
  },
};
