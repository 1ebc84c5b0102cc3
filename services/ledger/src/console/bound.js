/** The bound of a plan, drawn. */
import { html, svg } from './lib/lit-html.js';

const WIDTH = 400;

/** The imbalance before and after the plan, and the bound, on one scale. */
export function bound(before, after, least) {
  if (before === null || after === null || before <= 0) return '';
  const place = (value) => Math.min(WIDTH, (value / before) * WIDTH);
  return html`<svg class="bound" viewBox="0 0 400 14" preserveAspectRatio="none" aria-hidden="true">
    <rect class="track" width=${WIDTH} height="14"></rect>
    <rect class="after" width=${place(after)} height="14"></rect>
    ${least === null ? '' : svg`<rect class="least" x=${place(least)} width="5" height="14"></rect>`}
  </svg><p class="dim">The whole bar is the combined imbalance of all policies before the plan, the filled part what is left after it${least === null ? '' : ', and no plan can get below the line in it'}. The gain of a step is what it takes off the bar.
    1.50× is one policy: its imbalance is 1.5 times its threshold, and 1.00× or less is balanced.</p>`;
}
