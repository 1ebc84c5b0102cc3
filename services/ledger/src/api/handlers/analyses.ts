import { aggregateState, pacesOfAll } from '@kronos/projections';
import { ApiError } from '../answer.ts';
import type { ApiContext, Handlers } from '../context.ts';
import { decisionInput } from '../decisionInput.ts';
import { hostValues } from '../hostValues.ts';
import { timeIn } from '../query.ts';
import { vmWhy } from '../vmWhy.ts';
import { waitingStep } from '../waitingStep.ts';
import { USUAL_MS, whatIfAnswer } from '../whatIf.ts';

/** The range of a host's values. */
const VALUES_MS = 6 * 3_600_000;

/** Answers that are computed on request: decisions made again, drains, values over time and what-ifs. */
export const analysesHandlers = ({
  input,
  lookups,
  reads,
  limits,
}: ApiContext): Pick<Handlers, 'vmWhy' | 'decision' | 'hostDrain' | 'hostValues' | 'whatIf'> => {
  /** The event of the last decision, or of the one about a snapshot. @throws ApiError */
  async function decided(aggregate: string, snapshot: string | null) {
    const decision =
      snapshot === null ? aggregateState(input.state(), aggregate).decided : lookups.decisionAbout(aggregate, snapshot);
    const stored = decision === null ? null : await reads.eventAt(decision.sequence);
    if (stored === null) throw new ApiError(404, `there is no decision about ${JSON.stringify(aggregate)} yet`);
    return stored;
  }

  return {
    async vmWhy({ params: { name, id = '' }, query }) {
      const aggregate = lookups.known(name);
      const snapshot = query.get('snapshot');
      const stored = await decided(aggregate, snapshot);
      const why = await limits.explaining(() => vmWhy({ ...input, reading: limits.reading }, stored, id));
      const waits = snapshot === null ? waitingStep(aggregateState(input.state(), aggregate), id, input.clock()) : null;
      return { ...why, waits };
    },

    async decision({ params: { name }, query }) {
      const stored = await decided(lookups.known(name), query.get('snapshot'));
      return await limits.reading(() => decisionInput(input.log, stored));
    },

    async hostDrain({ params: { name, host = '' } }) {
      const whole = input.state();
      const state = aggregateState(whole, lookups.known(name));
      const snapshot = await lookups.snapshotOf(state.aggregate, null);
      const asked = { snapshot, state, hosts: [host], paces: pacesOfAll(whole) };
      const [drain] = await limits.explaining(() => input.aside.run('drain', asked));
      if (drain === undefined)
        throw new ApiError(404, `the newest snapshot of ${JSON.stringify(name)} has no host ${JSON.stringify(host)}`);
      return drain;
    },

    async hostValues({ params: { name, host = '' }, query }) {
      const aggregate = lookups.known(name);
      const sinceMs = timeIn(query, 'since') ?? input.clock() - VALUES_MS;
      const decisions = lookups.decisionsSince(aggregate, new Date(sinceMs));
      return await limits.explaining(() =>
        hostValues({ ...input, reading: limits.reading }, aggregate, host, decisions),
      );
    },

    async whatIf({ params, query }) {
      const aggregate = lookups.known(params.name);
      const untilMs = timeIn(query, 'until') ?? input.clock();
      const sinceMs = timeIn(query, 'since') ?? untilMs - USUAL_MS;
      return await limits.simulating(() =>
        whatIfAnswer(input.log, input, { aggregate, sinceMs, untilMs, sets: query.getAll('set') }),
      );
    },
  };
};
