import type { Regions } from '@kronos/connect';
import { aggregateState } from '@kronos/projections';
import { addActing } from './acting/acting.ts';
import type { Acting } from './acting/deps.ts';
import { addChanges, type Changes } from './api/changes.ts';
import { addRoutes } from './api/handlers/routes.ts';
import { type NameKeeper, nameKeeper } from './api/nameKeeper.ts';
import { aggregateNames, plannedName } from './api/stateJson.ts';
import { type Aside, createAside } from './aside/aside.ts';
import { addConsole } from './console.ts';
import { alarmReader } from './memory/alarms.ts';
import type { Folding } from './memory/fold.ts';
import type { LedgerInput } from './memory/input.ts';
import { type Notifier, startNotifier } from './notifications/notify.ts';

/** `acting`: the acts of people who log in to the console; null: none. `regions`: other installations that the console shows. */
export type ServedInput = LedgerInput & { readonly acting: Acting | null; readonly regions: Pick<Regions, 'read'> };

/** The parts of the ledger that serve people, and end with the service. */
export type Served = {
  readonly notifier: Notifier;
  readonly changes: Changes;
  readonly aside: Aside;
  readonly names: NameKeeper;
  /** Resolves when what people ask for first is in memory; never rejects. */
  readonly warm: Promise<void>;
};

/** Adds the JSON interface, the console and its commands to the server, and starts the notifications. */
export async function servePeople(input: ServedInput, folding: Folding): Promise<Served> {
  const { log, options, by, logger, metrics, http, acting, regions, clock } = input;
  const { view } = folding.folded;
  const { version } = by;
  const { scope, sinks } = options;
  const maxClockSkewMs = options.maxClockSkewSeconds * 1000;
  const state = () => view.at().state;
  const { history, following } = folding;
  const status = alarmReader({ log, state, history, scope, maxClockSkewMs, clock });
  const nameOf = (aggregate: string, serverId: string) => plannedName(aggregateState(state(), aggregate), serverId);
  const notifier = startNotifier({ log, sinks, status, nameOf, by, logger, metrics, clock });
  const { monotonic, after } = clock;
  const now = () => clock.now();
  const aside = createAside();
  const aggregates = () => aggregateNames(scope, state());
  const names = nameKeeper({ log, aside, aggregates, clock, logger });
  // A person's first search must not wait for names, nor their first question for the thread.
  const warm = options.console ? names.start() : Promise.resolve();
  const api = addRoutes(http, {
    state,
    history,
    log,
    aside,
    names,
    scope,
    version,
    clock: now,
    monotonic,
    after,
    status,
    regions,
  });
  const changes = addChanges(http, history, () => view.at().sequence, clock);
  folding.publishTo(changes);
  addActing(http, {
    acting,
    log,
    view,
    following,
    scope,
    version,
    maxSkewMs: maxClockSkewMs,
    clock: now,
    monotonic,
    logger,
    drain: api.drain,
  });
  if (options.console) await addConsole(http);
  return { notifier, changes, aside, names, warm };
}
