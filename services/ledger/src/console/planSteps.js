/** The steps of a plan as a table, each with its reason and what is left after it. */
import { moveCommands } from './commands.js';
import { html, svg } from './lib/lit-html.js';
import { expected, figures, link, named, phases, statuses, table } from './parts.js';
import { counts, ratioAfter, valuesAfter, worstPolicy, worstText } from './ratio.js';
import { person } from './session.js';
import { copiedMb } from './sizes.js';
import { memoryText, shareText, withoutDomain } from './words.js';

/** How a task ended, by its last event; a task that is over has left the state. */
const ENDS = new Set(['migration.completed', 'migration.failed', 'migration.skipped']);

export const statusOf = (taskId, tasks, events) =>
  tasks.find(({ id }) => id === taskId)?.status ??
  events.findLast((event) => event.taskId === taskId && ENDS.has(event.type))?.type.replace('migration.', '') ??
  '';

const statusText = (status) => statuses[status] ?? status;

export const shortOf = ({ hosts }) => withoutDomain(hosts?.map(({ name }) => name) ?? []);

/** The host with the highest value of a policy: an imbalance stays until it is lowered, whatever other hosts do. */
function highestAfter(picture, steps, policy) {
  const values = valuesAfter(picture, steps, policy);
  const [name] = picture.hosts
    .filter((host) => counts(host) && values.get(host.name) != null)
    .map(({ name: host }) => host)
    .toSorted((a, b) => values.get(b) - values.get(a));
  return name;
}

/**
 * The worst ratio that is left after this step and all before it, with its policy, as a bar beside that before the plan; and the host that
 * is the highest then.
 */
function leftAfter(picture, steps, before) {
  const { ratio, ratios } = ratioAfter(picture, steps);
  const most = Math.max(before.ratio ?? 0, ratio ?? 0, 1);
  const x = (value) => (60 * value) / most;
  return html`<span class="whole"><svg class="left" width="60" height="10" viewBox="0 0 60 10" aria-hidden="true">
      ${svg`<rect class="band" width=${x(1)} height="10"></rect><rect class="even" width=${x(ratio ?? 0)} height="10"></rect>`}</svg>
    ${worstText(picture.policies, ratios)}</span> <span class="dim whole">highest: ${shortOf(picture)(highestAfter(picture, steps, worstPolicy(picture.policies, ratios)) ?? 'unknown')}</span>`;
}

/** Two values in the fewest decimals that tell them apart. */
function fallText(from, to) {
  const decimals = [0, 1].find((digits) => shareText(from, digits) !== shareText(to, digits)) ?? 2;
  return `${shareText(from, decimals)} to ${shareText(to, decimals)}`;
}

/** The policy that a move lowers most at its source, measured in thresholds. */
function lowered(picture, before, step) {
  const parts = picture.policies.flatMap(({ policy, threshold }, i) => {
    const weight = step.weights[policy]?.source ?? 0;
    const value = valuesAfter(picture, before, i).get(step.from);
    return value == null || threshold <= 0 ? [] : [{ policy, share: weight / threshold, value, weight }];
  });
  const [most] = parts.toSorted((a, b) => b.share - a.share);
  return most === undefined || most.share <= 0
    ? null
    : `lowers ${most.policy} of ${step.from} from ${fallText(most.value, most.value - most.weight)}`;
}

const why = (step, picture, before) => {
  if (step.why === undefined) return html`<span class="dim">the details are no longer kept</span>`;
  // The usual reason is the same for every step: what it does to its host is not.
  const own = step.why.code === 'lowers-imbalance' && picture !== null ? lowered(picture, before, step) : null;
  return own ?? html`${step.why.text} <span class="dim">${figures(step.why.detail)}</span>`;
};

const commandsOf = (task) => (task === undefined ? '' : moveCommands(task));

/** `picture` null: the hosts of that moment are not known. `kept`: the steps that are chosen. */
export const steps = ({ aggregate, data }, page, { picture, before, kept, out, toggle }) => {
  const upTo = (s) => kept.filter(({ step }) => step <= s.step);
  const all = data.plan.steps;
  return table(
    'Steps',
    [
      ...(toggle === null
        ? []
        : [
            [
              'Approve',
              (s) =>
                html`<input type="checkbox" aria-label=${`Step ${s.step}: ${s.serverName}`} .checked=${!out.has(s.step)} @change=${() => toggle(s.step)}>`,
            ],
          ]),
      [
        'Move',
        (s) => html`<strong>${s.step}</strong> ${named(s.serverName, s.serverId, link.vm(aggregate, s.serverId))}`,
      ],
      [
        'From → to',
        (s) =>
          html`<a href=${link.host(aggregate, s.from)}>${s.from}</a> → <a href=${link.host(aggregate, s.to)}>${s.to}</a>${s.parking ? ' (parking)' : ''}`,
      ],
      ...(all.every(({ phase }) => phase === 'spread') ? [] : [['Phase', (s) => phases[s.phase] ?? s.phase]]),
      ['Copies', (s) => memoryText(copiedMb(s)), 'number'],
      ['Each takes', (s) => expected(page.stepTimes[all.indexOf(s)]), 'number'],
      ...(before?.ratio == null
        ? []
        : [['After this step', (s) => (out.has(s.step) ? '' : leftAfter(picture, upTo(s), before))]]),
      [
        'Why this one',
        (s) =>
          why(
            s,
            picture,
            upTo(s).filter(({ step }) => step !== s.step),
          ),
      ],
      ...(all.every(({ dependsOn }) => dependsOn.length === 0)
        ? []
        : [['Waits for', (s) => s.dependsOn.map((id) => id.replace(/^.*-s/, 'step ')).join(', ')]]),
      ...(toggle !== null && out.size === 0
        ? []
        : [
            ['Status', (s) => (out.has(s.step) ? 'left out' : statusText(statusOf(s.taskId, page.tasks, page.events)))],
          ]),
      ...(person() !== null && page.tasks.some(({ ended }) => ended === null)
        ? [['Commands', (s) => commandsOf(page.tasks.find(({ id }) => id === s.taskId))]]
        : []),
    ],
    all,
    'No step.',
  );
};
