import { didYouMean } from '@kronos/config/nearest';
import { count, type Shape, some, timeMs } from '@kronos/contracts';
import { decideInput } from '@kronos/cycle';
import { control } from '@kronos/operator';
import { type DecideInput, type Fit, fit, type Headroom, headroom, shapesOf } from '@kronos/placement';
import { aggregateState } from '@kronos/projections';
import { UsageError } from '../errors.ts';
import type { AggregateOption, ConfigOption, OperatorOptions, OutputOption } from '../grammar/shared.ts';
import { gibText } from '../numbers.ts';
import { currentState, type OpenLog, requireSnapshots, withSession } from '../open.ts';
import { answer } from '../output.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { table } from '../table.ts';
import { paint, type Terminal } from '../terminal.ts';
import { parseDuration, when } from '../times.ts';
import { askForPlan } from './proposals.ts';

type CapacityOptions = ConfigOption & OutputOption & AggregateOption;
export type FitOptions = OperatorOptions &
  AggregateOption & {
    readonly propose?: boolean;
    readonly wait: string;
    readonly flavor?: string;
    readonly vcpus?: number;
    readonly ram?: number;
    readonly disk?: number;
    readonly count: number;
    readonly maxMigrations?: number;
  };
export type HeadroomOptions = CapacityOptions & { readonly hosts: number; readonly proof?: boolean };

type Placed = { readonly aggregate: string; readonly snapshotTime: string };

/** kronos fit. */
export async function fitCommand(shell: Shell, options: FitOptions): Promise<void> {
  checkShape(options);
  const waitMs = parseDuration('--wait', options.wait);
  await withInputs(shell, options, async (inputs, session) => {
    const known = inputs.flatMap(({ snapshot }) => shapesOf(snapshot.servers));
    if (options.propose === true) {
      const aggregate = onlyAggregate(inputs);
      const limit = options.maxMigrations === undefined ? {} : { maxMoves: options.maxMigrations };
      const asked = { shape: shapeOf(options, known), count: options.count, ...limit };
      await askForPlan(shell, session, options, {
        aggregate,
        waitMs,
        ask: (asking) => control('capacity.asked', aggregate, asked, asking),
      });
      return;
    }
    const found = inputs.map((input): Placed & Fit => {
      const shape = shapeOf(options, known);
      const { aggregate, time } = input.snapshot;
      return { aggregate, snapshotTime: time, ...fit(input, shape, options.count, options.maxMigrations) };
    });
    await answer(shell, options, found, (terminal) =>
      found.map((one) => renderFit(terminal, one, shell.now())).join('\n'),
    );
    process.exitCode = found.some(({ after }) => after >= options.count) ? 0 : 1;
  });
}

/** kronos headroom. */
export async function headroomCommand(shell: Shell, options: HeadroomOptions): Promise<void> {
  await withInputs(shell, options, async (inputs) => {
    const found = inputs.map((input): Placed & Headroom => ({
      aggregate: input.snapshot.aggregate,
      snapshotTime: input.snapshot.time,
      ...headroom(input, options.hosts),
    }));
    await answer(shell, options, found, (terminal) =>
      found.map((one) => renderHeadroom(terminal, one, shell.now(), options.proof === true)).join('\n'),
    );
  });
}

/** The newest snapshot of each wanted aggregate, with what the log says of it. */
async function withInputs(
  shell: Shell,
  options: CapacityOptions,
  run: (inputs: readonly DecideInput[], session: OpenLog) => Promise<void>,
): Promise<void> {
  await withSession(shell, options, async (session) => {
    const { log, scope } = session;
    const snapshots = await requireSnapshots(log, filterAggregates(scope, options.aggregate));
    const state = await currentState(shell, log);
    await run(
      snapshots.map((snapshot) => decideInput(aggregateState(state, snapshot.aggregate), snapshot)),
      session,
    );
  });
}

/** @throws UsageError for several */
function onlyAggregate(inputs: readonly DecideInput[]): string {
  const [only, ...others] = inputs.map(({ snapshot }) => snapshot.aggregate);
  if (only !== undefined && others.length === 0) return only;
  throw new UsageError(
    '--propose needs one aggregate',
    `Name it with -a: ${inputs.map(({ snapshot }) => snapshot.aggregate).join(', ')}.`,
  );
}

/** @throws UsageError */
function checkShape({ flavor, vcpus, ram, disk }: FitOptions): void {
  const sizes = [vcpus, ram, disk].some((size) => size !== undefined);
  if (flavor !== undefined && sizes)
    throw new UsageError('both --flavor and sizes are given', 'Give --flavor, or --vcpus and --ram.');
  if (flavor === undefined && (vcpus === undefined || ram === undefined))
    throw new UsageError(
      'the size of the VMs is missing',
      'Give --flavor NAME, or --vcpus N --ram MIB (and --disk GIB).',
    );
}

/** @throws UsageError for a flavor that no VM has */
function shapeOf({ flavor, vcpus = 0, ram = 0, disk = 0 }: FitOptions, known: readonly Shape[]): Shape {
  if (flavor === undefined) {
    const local = disk === 0 ? {} : { DISK_GB: disk };
    return {
      name: `${vcpus} vCPUs, ${ram} MiB${disk === 0 ? '' : `, ${disk} GiB`}`,
      resources: { VCPU: vcpus, MEMORY_MB: ram, ...local },
      requiredTraits: [],
      forbiddenTraits: [],
    };
  }
  const found = known.find(({ name }) => name === flavor);
  if (found !== undefined) return found;
  const names = [...new Set(known.map(({ name }) => name))];
  throw new UsageError(
    `no VM of the newest snapshots has the flavor ${JSON.stringify(flavor)}`,
    `${didYouMean(flavor, names)}Or give its sizes: --vcpus N --ram MIB (and --disk GIB).`,
  );
}

const head = (terminal: Terminal, { aggregate, snapshotTime }: Placed, nowMs: number): string =>
  `${paint(terminal, 'bold', aggregate)}, as seen at ${when(timeMs(snapshotTime), nowMs)}`;

function renderFit(terminal: Terminal, one: Placed & Fit, nowMs: number): string {
  const { shape, wanted, now, hosts, moves, costGib, after, proven } = one;
  const enough = wanted === 1 ? `${now} fit now` : `${wanted} fit; there is room for ${now} now`;
  const lines = [
    head(terminal, one, nowMs),
    `${shape.name}: ${now >= wanted ? enough : `${now} of ${wanted} fit now`}`,
  ];
  if (hosts.length > 0) lines.push(`  on ${hosts.map(({ host, slots }) => `${host} (${slots})`).join(', ')}`);
  if (now >= wanted) return `${lines.join('\n')}\n`;
  if (moves.length === 0)
    lines.push(
      proven
        ? 'No moves of VMs make room for more.'
        : 'No plan was found that makes room for more. There may be one: the search reached its limit.',
    );
  else {
    lines.push(
      `${after} fit after ${count(moves.length, 'move')} of ${gibText(costGib, 0)}${proven ? '; no plan has fewer' : '; a plan with fewer moves may exist'}:`,
      ...moves.map(({ serverName, from, to }, i) => `  ${i + 1}. ${serverName}  ${from} -> ${to}`),
      'Nothing is moved yet: --propose asks for a plan with these moves, which waits for kronos approve.',
      'The load of the new VMs is not known: thresholds of policies are not compared.',
    );
  }
  return `${lines.join('\n')}\n`;
}

function renderHeadroom(terminal: Terminal, one: Placed & Headroom, nowMs: number, proof: boolean): string {
  const flavors = table(
    terminal,
    [
      { head: 'flavor', flex: true },
      { head: 'vcpus', right: true },
      { head: 'MiB', right: true },
      { head: 'slots', right: true },
    ],
    one.flavors.map(({ shape: { name, resources }, slots }) => [
      name,
      String(resources.VCPU ?? resources.PCPU ?? ''),
      String(resources.MEMORY_MB ?? ''),
      slots === 0 ? { text: '0', style: 'yellow' } : String(slots),
    ]),
  );
  const failures = one.failures.flatMap((each) => renderFailures(terminal, each, proof));
  return `${[head(terminal, one, nowMs), flavors.trimEnd(), ...failures].join('\n')}\n`;
}

/** The consequences of the given number of failed hosts: a sentence, the failures that strand VMs, and with `proof` the host of every VM. */
function renderFailures(
  terminal: Terminal,
  { count: hosts, losses }: Headroom['failures'][number],
  proof: boolean,
): string[] {
  const lacking = losses.filter(({ stranded }) => stranded.length > 0);
  const tested =
    hosts === 1
      ? `each of ${count(losses.length, 'host')} with VMs, by itself`
      : `each host with VMs, together with the ${hosts === 2 ? 'other one' : `${hosts - 1} others`} whose VMs have the most RAM`;
  const answer =
    lacking.length === 0
      ? 'the other hosts take all VMs'
      : paint(terminal, 'yellow', `${lacking.length} of ${losses.length} failures leave VMs without a host`);
  const lines = [`${count(hosts, 'host')} ${hosts === 1 ? 'fails' : 'fail'} (tested: ${tested}): ${answer}`];
  for (const { hosts: lost, servers, stranded, placed, proven } of proof ? losses : lacking) {
    const names = some(stranded.map(({ serverName }) => serverName));
    const result =
      stranded.length === 0
        ? 'the other hosts take all of them'
        : `${proven ? '' : 'at most '}${paint(terminal, 'yellow', `${count(stranded.length, 'VM')} would have no host`)}: ${names}`;
    lines.push(`  without ${lost.join(', ')} (${count(servers, 'VM')}): ${result}`);
    if (proof) lines.push(...placed.map(({ serverName, host, to }) => `    ${serverName}  ${host} -> ${to}`));
  }
  return lines;
}
