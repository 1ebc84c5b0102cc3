import { setTimeout as sleep } from 'node:timers/promises';
import { foldLog } from '@kronos/checkpoints';
import { hostDrains } from '@kronos/cycle';
import {
  aggregateOfDrain,
  askedDrain,
  control,
  nextRunAct,
  progressOf,
  progressText,
  type RunHost,
  requireUnblocked,
  type Told,
} from '@kronos/operator';
import { type AggregateState, aggregateState, openDrain, pacesOfAll } from '@kronos/projections';
import { newestSnapshots } from '@kronos/replay';
import {
  howToContinue,
  howToFree,
  notRequested,
  type Preview,
  previewSummary,
  previewText,
  type Rolling,
} from '../drain/text.ts';
import { UsageError } from '../errors.ts';
import type { AggregateOption, OperatorOptions } from '../grammar/shared.ts';
import { currentState, type OpenLog, tellCheckpoints, withSession } from '../open.ts';
import { runHook } from '../operator/hook.ts';
import { answer, isStructured } from '../output.ts';
import { chooseAggregates, filterAggregates, unknownHost } from '../scope.ts';
import { agrees, INTERRUPTED, type Shell } from '../shell.ts';
import { parseDuration } from '../times.ts';
import { give, tell } from './give.ts';

export type DrainOptions = OperatorOptions &
  AggregateOption & {
    readonly reason?: string;
    readonly yes?: boolean;
    readonly watch?: boolean;
    readonly maxParallel?: number;
    readonly all?: boolean;
    readonly oneByOne?: boolean;
    readonly hook?: string;
    readonly hookTimeout: string;
  };
type AskOptions = OperatorOptions & Pick<DrainOptions, 'reason'>;
export type UndrainOptions = OperatorOptions & AggregateOption & { readonly watch?: boolean };

/** Interval between two reads of the log for progress. */
const LOOK_MS = 1000;

/** kronos drain. */
export async function drain(shell: Shell, names: readonly string[], options: DrainOptions): Promise<void> {
  const rolling = checkOptions(names, options);
  await withSession(shell, options, async (session) => {
    const previews = await preview(shell, session, names, options);
    const sure = options.yes === true;
    if (!sure || !isStructured(options))
      await answer(shell, options, previews.length === 1 ? previews[0] : previews, (terminal) =>
        [...previews.map((one) => previewText(terminal, one, shell.now())), ...previewSummary(terminal, previews)].join(
          '\n',
        ),
      );
    if (!sure && !(await confirmed(shell, options, previews))) return;
    for (const one of previews) requireUnblocked(one);
    const hosts = previews.map(({ host, aggregate }) => ({ host, aggregate }));
    if (options.maxParallel === undefined && rolling === null) {
      const told = await askAll(shell, session, options, hosts);
      await tell(shell, options, told.list);
      if (options.watch === true)
        await run(shell, session, options, { hosts: told.hosts, maxParallel: hosts.length, rolling });
      return;
    }
    const todo = hosts.map(({ host, aggregate }) => ({
      host,
      aggregate,
      drainId: null,
      hooked: false,
      undrainAsked: false,
    }));
    await run(shell, session, options, { hosts: todo, maxParallel: options.maxParallel ?? 1, rolling });
  });
}

/** kronos undrain. */
export async function undrain(shell: Shell, names: readonly string[], options: UndrainOptions): Promise<void> {
  await withSession(shell, options, async (session) => {
    const scope = filterAggregates(session.scope, options.aggregate);
    const state = await currentState(shell, session.log);
    const told: Told[] = [];
    const hosts: RunHost[] = [];
    for (const host of new Set(names)) {
      const aggregate = aggregateOfDrain(state, scope, host);
      const drainId = askedDrain(state, host);
      told.push(
        await give(shell, session, options, (_, asking) => control('host.undrainAsked', aggregate, { host }, asking)),
      );
      hosts.push({ host, aggregate, drainId, hooked: true, undrainAsked: true });
    }
    await tell(shell, options, told);
    if (options.watch === true) await run(shell, session, options, { hosts, maxParallel: hosts.length, rolling: null });
  });
}

/** Checks what was given beside hosts. @throws UsageError */
function checkOptions(names: readonly string[], options: DrainOptions): Rolling | null {
  if ((options.all === true) === names.length > 0)
    throw new UsageError(
      options.all === true ? 'both hosts and --all are given' : 'no host is given',
      'Name hosts: kronos drain compute-07. Or add --all to drain every host of an aggregate: kronos drain --all -a gpu --one-by-one --hook COMMAND.',
    );
  const rolling = options.oneByOne === true;
  if (options.all === true && !rolling)
    throw new UsageError(
      '--all drains every host of an aggregate, which only works one by one',
      'Add --one-by-one --hook COMMAND: each host is emptied, COMMAND runs, and the host is enabled before the next one.',
    );
  if (rolling !== (options.hook !== undefined))
    throw new UsageError('--one-by-one and --hook belong together', 'Give both, or none of them.');
  if (rolling && options.maxParallel !== undefined)
    throw new UsageError('both --one-by-one and --max-parallel are given', 'Give one of them.');
  if (isStructured(options) && (rolling || options.watch === true || options.maxParallel !== undefined))
    throw new UsageError(
      '--output json and yaml do not work with options that show progress',
      'Leave out -o, or start the drain without watching and read kronos status --json.',
    );
  if (options.reason !== undefined && options.comment !== undefined)
    throw new UsageError('both --reason and --comment are given', 'Give one of them: they mean the same.');
  const { hook, hookTimeout } = options;
  const hookTimeoutMs = parseDuration('--hook-timeout', hookTimeout);
  return hook === undefined ? null : { hook, hookTimeout, hookTimeoutMs };
}

/** The preview of drains, from the newest snapshots. @throws UsageError for a host that none of them has */
async function preview(
  shell: Shell,
  { log, scope }: OpenLog,
  names: readonly string[],
  options: DrainOptions,
): Promise<Preview[]> {
  const wanted =
    options.all === true
      ? chooseAggregates(scope, { names: options.aggregate, all: false }, 'drain --all')
      : filterAggregates(scope, options.aggregate);
  const snapshots = await newestSnapshots(log, wanted);
  const state = await currentState(shell, log);
  const all = snapshots.flatMap(({ hosts }) => hosts.map(({ name }) => name));
  const asked = options.all === true ? all : [...new Set(names)];
  for (const name of asked) if (!all.includes(name)) throw unknownHost(name, all);
  // One by one, each host takes VMs again before the next one is drained.
  const together = options.oneByOne === true ? asked.map((host) => [host]) : [asked];
  return snapshots.flatMap((snapshot) =>
    together.flatMap((hosts) =>
      hostDrains({
        snapshot,
        state: aggregateState(state, snapshot.aggregate),
        hosts,
        paces: pacesOfAll(state),
      }).map((one) => {
        const open = openDrain(state, one.host);
        if (open === null) return one;
        const { aggregate, drain } = open;
        return { ...one, requested: { aggregate, by: drain.asked.by, atMs: drain.asked.atMs } };
      }),
    ),
  );
}

async function confirmed(shell: Shell, options: DrainOptions, previews: readonly Preview[]): Promise<boolean> {
  const others = previews.some(({ requested }) => requested === undefined);
  if (shell.ask === null || isStructured(options)) {
    if (!isStructured(options))
      shell.terminal.out(`\n${notRequested(previews)}${others ? ' Add --yes to drain.' : ''}\n`);
    return false;
  }
  if (await agrees(shell.ask, '\nDrain?')) return true;
  shell.terminal.out(`${notRequested(previews)}\n`);
  process.exitCode = 1;
  return false;
}

/** Asks for the drain of hosts; one that is being drained already is taken as it is. */
async function askAll(
  shell: Shell,
  session: OpenLog,
  options: AskOptions,
  wanted: readonly { readonly host: string; readonly aggregate: string }[],
): Promise<{ readonly list: Told[]; readonly hosts: RunHost[] }> {
  const list: Told[] = [];
  const hosts: RunHost[] = [];
  const comment = options.reason ?? options.comment;
  const how: OperatorOptions = comment === undefined ? options : { ...options, comment };
  for (const { host, aggregate } of wanted) {
    const before: { open: ReturnType<typeof openDrain> } = { open: null };
    const told = await give(shell, session, how, (state, asking) => {
      before.open = openDrain(state, host);
      return control('host.drainAsked', aggregate, { host }, asking);
    });
    list.push(told);
    const { open } = before;
    const drainId = open?.drain.asked.commandId ?? told.commandId;
    hosts.push({ host, aggregate: open?.aggregate ?? aggregate, drainId, hooked: false, undrainAsked: false });
  }
  return { list, hosts };
}

type DrainRun = {
  readonly hosts: readonly RunHost[];
  readonly maxParallel: number;
  readonly rolling: Rolling | null;
};

/** Goes on until every host of the run is where it has to be, and shows how far each is. */
async function run(
  shell: Shell,
  session: OpenLog,
  options: AskOptions,
  { hosts, maxParallel, rolling }: DrainRun,
): Promise<void> {
  const interrupted = shell.interrupted();
  const current = [...hosts];
  const shown = new Map<string, string>();
  const set = (host: RunHost, change: Partial<RunHost>): void => {
    const i = current.findIndex((one) => one.host === host.host);
    current[i] = { ...host, ...change };
  };
  const view = await foldLog(session.log, tellCheckpoints(shell));
  try {
    for (;;) {
      if (interrupted.aborted) {
        shell.terminal.err(`kronos: stopped watching. Requested drains continue; kronos status shows them.\n`);
        if (rolling !== null) shell.terminal.err(howToContinue(current, view.at().state, rolling, options));
        process.exitCode = INTERRUPTED;
        return;
      }
      const { state } = await view.refresh();
      const of = (aggregate: string) => aggregateState(state, aggregate);
      tellNews(shell, current, of, shown);
      const act = nextRunAct(current, of, { maxParallel, rolling: rolling !== null });
      switch (act.do) {
        case 'wait':
          await sleep(LOOK_MS, undefined, { signal: interrupted }).catch(() => undefined);
          break;
        case 'drain': {
          const { list, hosts: asked } = await askAll(shell, session, options, [act.host]);
          const [refused] = list.filter(({ effect }) => effect === 'refused');
          if (refused !== undefined) return stop(`${act.host.host}: ${refused.text}`);
          set(act.host, { ...asked[0] });
          break;
        }
        case 'hook': {
          const problem = await runHookOn(shell, rolling, act.host, interrupted);
          if (problem !== null) return stop(problem);
          set(act.host, { hooked: true });
          break;
        }
        case 'undrain': {
          const { host, aggregate } = act.host;
          await give(shell, session, options, (_, asking) => control('host.undrainAsked', aggregate, { host }, asking));
          set(act.host, { undrainAsked: true });
          break;
        }
        case 'end':
          if (act.problem !== null) return stop(act.problem, act.stuck);
          return;
      }
    }
  } finally {
    await view.close();
  }

  function stop(problem: string, stuck: readonly string[] = []): void {
    shell.terminal.err(`kronos: ${problem}\n`);
    if (stuck.length > 0) shell.terminal.err(howToFree(current, view.at().state, stuck, { rolling: rolling !== null }));
    if (rolling !== null) shell.terminal.err(howToContinue(current, view.at().state, rolling, options));
    process.exitCode = 1;
  }
}

/** Shows how far each host is, if that has changed since it was last shown. */
function tellNews(
  { terminal }: Shell,
  hosts: readonly RunHost[],
  of: (aggregate: string) => AggregateState,
  shown: Map<string, string>,
): void {
  for (const host of hosts) {
    const text = progressText(progressOf(host, of(host.aggregate)));
    if (shown.get(host.host) === text) continue;
    shown.set(host.host, text);
    terminal.out(`${host.host}: ${text}\n`);
  }
}

/** Runs the hook for an empty host. Returns the problem; null when it succeeded. */
async function runHookOn(
  shell: Shell,
  rolling: Rolling | null,
  { host, aggregate }: RunHost,
  interrupted: AbortSignal,
): Promise<string | null> {
  if (rolling === null) throw new Error('a hook is due in a run without one');
  shell.terminal.out(`${host}: the hook runs: ${rolling.hook}\n`);
  const env = { ...shell.env, KRONOS_HOST: host, KRONOS_AGGREGATE: aggregate };
  const problem = await runHook(rolling.hook, env, rolling.hookTimeoutMs, interrupted);
  return problem === null ? null : `the hook failed on ${host}: ${problem}`;
}
