/** Alarms as lines: the subject, the problem, the remedy. */
import { nowMs } from './api.js';
import { html } from './lib/lit-html.js';
import { duration, link } from './parts.js';

/** The alarms that a person has to know; the others are notes. */
export const urgent = (alarms) => alarms.filter(({ severity }) => severity === 'alarm');

/** The alarms about an aggregate or something of it, and the alarms that explain them. */
export const alarmsOf = (alarms, aggregate) =>
  urgent(alarms).filter(
    ({ places, explains }) =>
      places.some((place) => place.aggregate === aggregate) || explains.some(({ about }) => about === aggregate),
  );

export const alarmLine = ({ about, text, remedy, runbook, explains, since }) => html`<li class="card bad-edge alarm">
  <p><span><strong>${about}</strong>: ${text}${explains.length === 0 ? '' : html` <span class="dim">(explains ${explains.length} more)</span>`}</span> <span class="dim">for ${duration(Math.max(0, nowMs() - Date.parse(since)))}</span></p>
  <p><span class="dim">${remedy}</span> <a class="button" href=${link.runbook(runbook.replace(/^.*#/, ''))}>Runbook</a></p></li>`;
