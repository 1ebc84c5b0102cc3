/** The hosts where a VM ran, over time: one row per host, one bar for each stay, and a line where it moved. The table says the same. */
import { html, svg } from './lib/lit-html.js';
import { clockTime, duration, link } from './parts.js';
import { count } from './words.js';

const ROW = 26;
const BAR = 14;
const FOOT = 18;

/** Each stay with its times in ms, or null: none is known. The beginning of the first may be unknown. */
function staysOf(ran, nowMs) {
  const known = ran.flatMap(({ since, until }) => [since, until]).filter((time) => time !== null);
  if (known.length === 0) return null;
  const first = Math.min(...known.map((time) => Date.parse(time)));
  const range = Math.max(60_000, nowMs - first);
  const fromMs = first - range * 0.08;
  const stays = ran.map(({ host, since, until }) => ({
    host,
    open: since === null,
    sinceMs: since === null ? fromMs : Date.parse(since),
    untilMs: until === null ? nowMs : Date.parse(until),
  }));
  return { fromMs, stays };
}

export function journey({ aggregate, ran, current }, nowMs) {
  const found = staysOf(ran, nowMs);
  if (found === null)
    return current === null
      ? ''
      : html`<p>On <a href=${link.host(aggregate, current)}>${current}</a> all the time that the log tells of.</p>`;
  const { fromMs, stays } = found;
  const hosts = [...new Set(stays.map(({ host }) => host))];
  const width = Math.max(260, Math.min(innerWidth, 2600) - 64);
  const names = Math.min(200, width * 0.35);
  const x = (ms) => names + ((ms - fromMs) / (nowMs - fromMs)) * (width - names - 4);
  const y = (host) => hosts.indexOf(host) * ROW;
  const height = hosts.length * ROW + FOOT;
  const moves = stays.slice(1).map((stay, i) => [stays[i], stay]);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Picture of the journey"><svg class="journey" width=${width} height=${height}
    viewBox=${`0 0 ${width} ${height}`} role="group" aria-label=${`${count(moves.length, 'move')} over ${count(hosts.length, 'host')}; the table has the times`}>
    ${hosts.map(
      (
        host,
      ) => svg`<a href=${link.host(aggregate, host)}><text x="0" y=${y(host) + BAR + 2}>${host.length > names / 7 ? `…${host.slice(-Math.floor(names / 7) + 1)}` : host}<title>${host}</title></text></a>
      <path class="edge" d=${`M${names} ${y(host) + ROW - 3}H${width}`}></path>`,
    )}
    ${stays.map(
      ({ host, open, sinceMs, untilMs }, i) =>
        svg`<rect class=${`stay ${i === stays.length - 1 ? 'last' : ''} ${open ? 'open' : ''}`} x=${x(sinceMs)} y=${y(host) + 4} width=${Math.max(3, x(untilMs) - x(sinceMs))} height=${BAR} rx="2"><title>${`${host}: ${open ? 'before that' : clockTime(sinceMs)} to ${i === stays.length - 1 ? 'now' : clockTime(untilMs)}, ${duration(untilMs - sinceMs)}`}</title></rect>`,
    )}
    ${moves.map(
      ([from, to]) =>
        svg`<path class="arc" d=${`M${x(from.untilMs)} ${y(from.host) + 4 + BAR / 2}L${x(to.sinceMs)} ${y(to.host) + 4 + BAR / 2}`}></path>`,
    )}
    <text class="dim" x=${names} y=${height - 4}>${clockTime(fromMs)}</text><text class="dim" x=${width - 4} y=${height - 4} text-anchor="end">now</text>
  </svg></div>`;
}
