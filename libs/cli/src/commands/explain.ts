import type { Decision, Reason } from '@kronos/contracts';
import { type Assumed, type ByPolicy, type DestinationVerdict, reasonMeanings } from '@kronos/placement';
import { type DamagedMove, skipText } from '@kronos/projections';
import { type Explained, explainDecision, explainWhere, type History, liveHistory, type Wanted } from '@kronos/replay';
import type { Command } from 'commander';
import { UsageError } from '../errors.ts';
import { type ConfigOption, tellPassedOver, withConfig, withSession } from '../open.ts';
import { openRecording, tellProblems } from '../recordings.ts';
import { chooseAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { type Cell, count, figure, paint, type Terminal, table } from '../terminal.ts';
import { parseTime, when } from '../times.ts';
import { examples, printJson } from './help.ts';
import { refusals } from './plan.ts';

type ExplainOptions = ConfigOption & {
  readonly at?: string;
  readonly aggregate?: string;
  readonly in?: string;
  readonly step?: string;
  readonly json?: boolean;
};

/** Hosts that are listed as destinations. */
const SHOWN = 8;

export function explainCommands(program: Command, shell: Shell): void {
  const explain = program
    .command('explain')
    .description('Show why a VM moved, or why nothing did, by running a recorded decision again');
  const sub = (name: string, description: string): Command =>
    withConfig(explain.command(name))
      .description(description)
      .option(
        '--at <time>',
        'Explain the last decision at or before this time: 10m, 12:30, 2026-03-01T12:30Z (default: now)',
      )
      .option('-a, --aggregate <name>', 'Only this aggregate')
      .option('--in <directory>', 'Read a recorded directory instead of the running system')
      .option('--json', 'Print the explanation as JSON');

  sub('cycle', 'Show the result of a cycle: what blocked it, policies, refusals')
    .addHelpText(
      'after',
      examples(
        ['kronos explain cycle', 'why nothing moves now'],
        ['kronos explain cycle --at 2h', 'what it was two hours ago'],
      ),
    )
    .action((options: ExplainOptions) =>
      run(shell, options, 'cycle', async (history, wanted) => {
        const explained = await explainDecision(history, wanted);
        show(shell, options, explained, explained.explanation?.cycle() ?? null, () =>
          cycleText(shell.terminal, explained),
        );
      }),
    );

  sub('plan', 'Show the quality of a plan and the reason for each step')
    .argument('[plan]', 'Plan id (default: the last plan)')
    .option('--step <n>', 'Show one step in full: why this VM, why this destination, why no other')
    .addHelpText(
      'after',
      examples(
        ['kronos explain plan gpu-29537', 'the whole plan'],
        ['kronos explain plan gpu-29537 --step 2', 'one step'],
      ),
    )
    .action((planId: string | undefined, options: ExplainOptions) =>
      run(shell, options, 'plan', async (history, wanted) => {
        const explained = await explainDecision(history, { ...wanted, planId: planId ?? null });
        const { explanation, decision } = explained;
        if (options.step !== undefined) {
          const number = Number(options.step);
          if (!decision.plan?.steps.some((step) => step.step === number))
            throw new UsageError(
              `there is no step ${JSON.stringify(options.step)}`,
              `The plan has ${count(decision.plan?.steps.length ?? 0, 'step')}.`,
            );
          show(shell, options, explained, explanation?.step(number) ?? null, () =>
            stepText(shell.terminal, explained, number),
          );
        } else show(shell, options, explained, explanation?.plan() ?? null, () => planText(shell.terminal, explained));
      }),
    );

  sub('vm', 'Show why a VM moves or stays')
    .argument('<vm>', 'Uuid or name of the server')
    .addHelpText(
      'after',
      examples(
        ['kronos explain vm db-7', 'why it stays, or where it goes'],
        ['kronos explain vm db-7 --at 12:30', 'and then?'],
      ),
    )
    .action((vm: string, options: ExplainOptions) =>
      run(shell, options, 'vm', async (history, wanted) => {
        const is = (id: string, name: string): boolean => id === vm || name === vm;
        const explained = await explainWhere(history, wanted, {
          name: `the VM ${JSON.stringify(vm)}`,
          inSnapshot: ({ servers }) => servers.some(({ id, name }) => is(id, name)),
          onLog: ({ decision }) => mentions(decision, is).length > 0,
        });
        const id = explained.snapshot?.servers.find((server) => is(server.id, server.name))?.id ?? vm;
        show(shell, options, explained, explained.explanation?.vm(id) ?? null, () =>
          vmText(shell.terminal, explained, id, is),
        );
      }),
    );

  sub('host', 'Show the VMs of a host and why it gains or loses VMs')
    .argument('<host>', 'Nova service host')
    .addHelpText('after', examples(['kronos explain host compute-07', 'what it holds and what happens to it']))
    .action((host: string, options: ExplainOptions) =>
      run(shell, options, 'host', async (history, wanted) => {
        const explained = await explainWhere(history, wanted, {
          name: `the host ${JSON.stringify(host)}`,
          inSnapshot: ({ hosts }) => hosts.some(({ name }) => name === host),
          onLog: ({ decision }) => decision.plan?.steps.some((step) => step.from === host || step.to === host) ?? false,
        });
        show(shell, options, explained, explained.explanation?.host(host) ?? null, () =>
          hostText(shell.terminal, explained, host),
        );
      }),
    );
}

async function run(
  shell: Shell,
  options: ExplainOptions,
  command: string,
  answer: (history: History, wanted: Wanted) => Promise<void>,
): Promise<void> {
  const at = options.at === undefined ? {} : { atMs: parseTime('--at', options.at, shell.now()) };
  if (options.in !== undefined) {
    const { history, about, problems } = await openRecording(shell, options.in);
    tellProblems(shell, history.name, problems);
    const aggregates =
      options.aggregate === undefined
        ? about.aggregates
        : chooseAggregates(about.aggregates, options.aggregate, false, '');
    await answer(history, { aggregates, ...at });
    return;
  }
  await withSession(shell, options, async ({ log, scope, config }) => {
    const aggregates =
      options.aggregate === undefined
        ? scope
        : chooseAggregates(scope, options.aggregate, false, `explain ${command} -a`);
    await answer(liveHistory(log, config.nats.servers.join(', '), tellPassedOver(shell)), { aggregates, ...at });
  });
}

/** The explanation under the decision that it is of. */
function show(
  shell: Shell,
  options: ExplainOptions,
  explained: Explained,
  answer: object | null,
  text: () => string,
): void {
  const { terminal } = shell;
  const { event, decision, missing, same } = explained;
  const { snapshotId, snapshotTime, plannerVersion } = event.data;
  if (options.json === true) {
    printJson(terminal, {
      aggregate: event.aggregate,
      snapshotId,
      snapshotTime,
      plannerVersion,
      missing,
      same,
      decision,
      explanation: answer,
    });
    return;
  }
  const outcome = paint(terminal, decision.outcome === 'planned' ? 'green' : 'yellow', decision.outcome);
  terminal.out(
    `${event.aggregate}, ${when(Date.parse(snapshotTime), shell.now())} (${snapshotId}): ${outcome}: ${decision.reason.text}\n`,
  );
  if (missing !== null)
    terminal.out(`${paint(terminal, 'yellow', `It cannot be run again: ${missing}. This is what the log holds.`)}\n`);
  if (same === false)
    terminal.out(
      `${paint(terminal, 'yellow', 'Run again it gives another decision, which is the one explained here: kronos replay shows the difference.')}\n`,
    );
  terminal.out(`\n${text()}`);
}

const meanings: Readonly<Record<string, string>> = reasonMeanings;
const meaning = (code: string): string => meanings[code] ?? code;
const values = (by: ByPolicy): string =>
  Object.entries(by)
    .map(([name, value]) => `${name} ${figure(value)}`)
    .join(', ');

function reasonLine({ text, detail }: Reason): string {
  const facts = Object.entries(detail ?? {}).map(
    ([key, value]) =>
      `${key} ${typeof value === 'string' ? value : typeof value === 'number' ? figure(value) : JSON.stringify(value)}`,
  );
  return facts.length === 0 ? text : `${text} (${facts.join(', ')})`;
}

/** Events before this decision that nobody could read and a custodian skipped. */
const skipLines = ({ skips }: Explained['state']): string =>
  skips.map((skip) => `unreadable events were skipped: ${skipText(skip)}\n`).join('');

function cycleText(terminal: Terminal, { explanation, decision, state }: Explained): string {
  const cycle = explanation?.cycle() ?? null;
  if (cycle === null)
    return `${skipLines(state)}${policiesText(decision)}${troubles(decision)}${refusals(decision.refusals)}`;
  const gates = cycle.gates.map((gate) => `gate shut: ${reasonLine(gate)}\n`).join('');
  const rows = cycle.policies.map((p): Cell[] => [
    p.policy,
    figure(p.imbalance),
    figure(p.threshold),
    p.participates
      ? p.detected
        ? { text: `above, ${p.sustainedCycles} in a row of ${Math.max(1, p.neededCycles)} needed`, style: 'yellow' }
        : 'within'
      : { text: p.reason?.text ?? 'takes no part', style: 'red' },
    p.highest === null ? '' : `${p.highest.host} ${figure(p.highest.value)}`,
    p.lowest === null ? '' : `${p.lowest.host} ${figure(p.lowest.value)}`,
  ]);
  const drains = cycle.drains
    .map(
      (d) =>
        `drain ${d.host} (${count(d.vms, 'VM')}): ${d.refusal === null ? count(d.moves, 'move') : meaning(d.refusal)}\n`,
    )
    .join('');
  return [
    gates,
    rows.length === 0
      ? ''
      : table(
          terminal,
          [
            { head: 'policy' },
            { head: 'imbalance', right: true },
            { head: 'threshold', right: true },
            { head: 'state', flex: true },
            { head: 'highest', flex: true },
            { head: 'lowest', flex: true },
          ],
          rows,
        ),
    `\n${cycle.hosts.destinations} of ${count(cycle.hosts.all, 'host')} may be destinations${counted(cycle.hosts.refused)}\n`,
    `${cycle.vms.movable} of ${count(cycle.vms.all, 'VM')} may move${counted(cycle.vms.refused)}\n`,
    assumedNote(cycle.assumed),
    drains,
    skipLines(state),
    troubles(decision),
    refusals(cycle.refusals),
  ].join('');
}

/** Under figures that assume released moves to be done. */
const assumedNote = (moves: number): string =>
  moves === 0 ? '' : `All figures assume that the released moves of ${count(moves, 'VM')} are done.\n`;

const counted = (counts: Readonly<Record<string, number>>): string => {
  const parts = Object.entries(counts).map(([code, n]) => `${n}: ${meaning(code)}`);
  return parts.length === 0 ? '' : `; ${parts.join(' ')}`;
};

const policiesText = ({ before }: Decision): string =>
  before.policies
    .map(
      (p) =>
        `${p.policy}: imbalance ${figure(p.imbalance)}, threshold ${figure(p.threshold)}${p.participates ? '' : ', takes no part'}\n`,
    )
    .join('');

const troubles = ({ stuck, warnings, evacuations }: Decision): string =>
  [
    ...evacuations.map((e) => `evacuation of ${e.host}: ${e.state}, ${count(e.left, 'VM')} left\n`),
    ...stuck.map((s) => `${s.serverName} cannot leave ${s.host}: ${reasonLine(s.reason)}\n`),
    ...warnings.map((warning) => `${reasonLine(warning)}\n`),
  ].join('');

function planText(terminal: Terminal, { explanation, decision }: Explained): string {
  if (decision.plan === null) return 'This decision has no plan: kronos explain cycle says why.\n';
  const plan = explanation?.plan() ?? null;
  const { lowerBound, shareOfPossible, candidatesEvaluated, after } = decision.plan;
  const possible =
    shareOfPossible === null
      ? ''
      : `: ${Math.floor(shareOfPossible * 100)} % of what is possible with ${count(decision.plan.budget, 'move')}${lowerBound === null ? '' : ` (no plan can go below ${figure(lowerBound)})`}`;
  const course = new Map(plan?.course.map((at) => [at.step, at.combined]));
  const rows = decision.plan.steps.map((step): Cell[] => [
    String(step.step),
    step.serverName,
    step.from,
    step.to,
    figure(course.get(step.step) ?? null),
    step.why === undefined ? '' : reasonLine(step.why),
  ]);
  const ended =
    plan?.endedBy === 'work'
      ? 'The search ended with its work limit ([engine] search_work_limit): more work might find more.\n'
      : '';
  return `combined imbalance ${figure(decision.before.combined)} -> ${figure(after.combined)}${possible}; ${count(candidatesEvaluated, 'candidate')} evaluated\n\n${table(
    terminal,
    [
      { head: 'step', right: true },
      { head: 'vm', flex: true },
      { head: 'from', flex: true },
      { head: 'to', flex: true },
      { head: 'imbalance then', right: true },
      { head: 'why', flex: true },
    ],
    rows,
  )}${ended}${assumedNote(explanation?.cycle().assumed ?? 0)}${troubles(decision)}${refusals(decision.refusals)}`;
}

function stepText(terminal: Terminal, { explanation, decision }: Explained, number: number): string {
  const step = decision.plan?.steps.find((one) => one.step === number);
  const answer = explanation?.step(number) ?? null;
  const head =
    step === undefined
      ? ''
      : `step ${number}: ${step.serverName} from ${step.from} to ${step.to} (${step.phase})\n${step.why === undefined ? '' : `${reasonLine(step.why)}\n`}`;
  if (answer === null) return head;
  const { source, destination, combined } = answer;
  return [
    head,
    `it weighs ${values(answer.weights)}\n`,
    `${source.host}: ${values(source.before)} -> ${values(source.after)}\n`,
    `${destination.host}: ${values(destination.before)} -> ${values(destination.after)}\n`,
    `combined imbalance with the whole plan ${figure(combined.withStep)}, without this step ${figure(combined.withoutStep)}\n\n`,
    destinationsText(terminal, 'elsewhere', answer.elsewhere),
  ].join('');
}

function destinationsText(terminal: Terminal, title: string, destinations: readonly DestinationVerdict[]): string {
  const rows = destinations
    .slice(0, SHOWN)
    .map((d): Cell[] => [
      d.host,
      figure(d.combined),
      figure(d.gain),
      d.refusal !== null
        ? { text: meaning(d.refusal), style: 'red' }
        : d.worsens.length > 0
          ? { text: `would worsen ${d.worsens.join(', ')}`, style: 'yellow' }
          : { text: 'legal', style: 'green' },
    ]);
  const more = destinations.length > SHOWN ? `${destinations.length - SHOWN} more: --json has all of them.\n` : '';
  return `${table(
    terminal,
    [
      { head: title, flex: true },
      { head: 'imbalance', right: true },
      { head: 'gain', right: true },
      { head: '', flex: true },
    ],
    rows,
  )}${more}`;
}

/** What a decision on the log says about a VM. */
function mentions(decision: Decision, is: (id: string, name: string) => boolean): string[] {
  const steps = decision.plan?.steps
    .filter((s) => is(s.serverId, s.serverName))
    .map((s) => `step ${s.step} moves it from ${s.from} to ${s.to}${s.why === undefined ? '' : `: ${s.why.text}`}`);
  const stuck = decision.stuck
    .filter((s) => is(s.serverId, s.serverName))
    .map((s) => `it cannot leave ${s.host}: ${reasonLine(s.reason)}`);
  return [...(steps ?? []), ...stuck];
}

/** Moves before this decision that left their servers in ERROR. */
const damagedLines = (terminal: Terminal, { state }: Explained, concerns: (move: DamagedMove) => boolean): string =>
  [...state.damaged.values()]
    .filter(concerns)
    .map(
      ({ serverName, from, destination, atMs, taskId, reasons }) =>
        `${paint(terminal, 'red', `${serverName} was in ERROR after its move from ${from} to ${destination}`)} (${new Date(atMs).toISOString()}, ${taskId}): ${reasons.map(({ text }) => text).join('; ')}\n`,
    )
    .join('');

function vmText(
  terminal: Terminal,
  explained: Explained,
  id: string,
  is: (id: string, name: string) => boolean,
): string {
  const vm = explained.explanation?.vm(id) ?? null;
  const damaged = damagedLines(terminal, explained, (move) => move.serverId === id);
  const said = mentions(explained.decision, is)
    .map((line) => `${line}\n`)
    .join('');
  if (vm === null) return `${damaged}${said === '' ? 'The decision says nothing about it.\n' : said}`;
  const detail = Object.entries(vm.verdict.detail).map(
    ([key, value]) => `${key} ${typeof value === 'number' ? figure(value) : value}`,
  );
  const verdict =
    vm.steps.length > 0
      ? said
      : `it stays: ${meaning(vm.verdict.code)}${detail.length === 0 ? '' : ` (${detail.join(', ')})`}\n${said}`;
  return [
    `${vm.serverName} (${vm.serverId}) on ${vm.host}${vm.assumed === null ? '' : `, ${assumedText(vm.assumed)}`}\n`,
    damaged,
    verdict,
    `it weighs ${values(vm.weights)}${vm.groups.length === 0 ? '' : `; in ${vm.groups.length === 1 ? 'group' : 'groups'} ${vm.groups.join(', ')}`}\n\n`,
    destinationsText(terminal, 'if it went to', vm.destinations),
  ].join('');
}

/** A released move that has not ended is assumed to be done, and must not be told as a fact. */
const assumedText = ({ host, tasks }: Assumed): string =>
  `assumed on ${host} by ${tasks
    .map(
      ({ taskId, startedAt }) =>
        `task ${taskId}, ${startedAt === null ? 'not started yet' : `started at ${startedAt}`}`,
    )
    .join(' and ')}`;

function hostText(terminal: Terminal, explained: Explained, name: string): string {
  const { explanation, decision, snapshot } = explained;
  const damaged = damagedLines(terminal, explained, ({ from, destination }) => from === name || destination === name);
  const steps = decision.plan?.steps ?? [];
  const host = explanation?.host(name) ?? null;
  const moves = steps
    .filter((step) => step.from === name || step.to === name)
    .map(
      (step) =>
        `step ${step.step}: ${step.serverName} ${step.to === name ? `arrives from ${step.from}` : `leaves for ${step.to}`}\n`,
    )
    .join('');
  if (host === null) return `${damaged}${moves === '' ? 'The decision says nothing about it.\n' : moves}`;
  const names = new Map(snapshot?.servers.map((server) => [server.id, server.name]));
  const hosts = snapshot?.hosts.length ?? 0;
  const heaviest = host.vms.toSorted((a, b) => sum(b.weights) - sum(a.weights));
  return [
    host.refusal === null
      ? 'it may be a destination\n'
      : `it takes no VM: ${meaning(host.refusal.code)}${host.refusal.detail.reason === undefined ? '' : ` (${host.refusal.detail.reason})`}\n`,
    `${values(host.before)}${moves === '' ? '' : `; with the plan ${values(host.after)}`}${
      host.rank === null
        ? ''
        : `; place among ${hosts} hosts: ${Object.entries(host.rank)
            .map(([policy, place]) => `${policy} ${place}`)
            .join(', ')}`
    }\n`,
    `free: ${Object.entries(host.free)
      .map(([resource, amount]) => `${resource} ${figure(amount, 1)}`)
      .join(', ')}\n`,
    host.evacuation === null ? '' : `evacuation: ${host.evacuation.state}, ${count(host.evacuation.left, 'VM')} left\n`,
    damaged,
    host.drainRefusal === null ? '' : `not drained: ${meaning(host.drainRefusal)}\n`,
    moves,
    ...host.assumedGone.map((gone) => `${names.get(gone.serverId) ?? gone.serverId} is here, ${assumedText(gone)}\n`),
    '\n',
    heaviest.length === 0
      ? 'It holds no VM, as far as released moves are assumed to be done.\n'
      : table(
          terminal,
          [
            { head: 'vm', flex: true },
            { head: 'weighs', flex: true },
            { head: '', flex: true },
          ],
          heaviest.map((vm): Cell[] => [
            names.get(vm.serverId) ?? vm.serverId,
            values(vm.weights),
            vm.assumed !== null
              ? { text: `on ${vm.assumed.observed}, ${assumedText(vm.assumed)}`, style: 'dim' }
              : vm.refusal === null
                ? ''
                : { text: meaning(vm.refusal), style: 'dim' },
          ]),
        ),
  ].join('');
}

const sum = (weights: ByPolicy): number => Object.values(weights).reduce((total, value) => total + value, 0);
