import { expect, it } from 'vitest';
import { type AskedPlan, proposalText } from './proposal.ts';

const quiet = () => undefined;
const terminal = { out: quiet, err: quiet, steer: quiet, colour: false, columns: 200, live: false };
const noPlan = (capacity: Readonly<Record<string, unknown>> | undefined, text: string): string => {
  const data = {
    outcome: 'gated',
    reason: { code: 'x', text },
    steps: [],
    refusals: {},
    warnings: [],
    planId: 'p',
    capacity,
  };
  return proposalText(terminal, { aggregate: 'gpu', data: { ...data, commandId: 'c' } } as unknown as AskedPlan, '');
};

it('the answer that there is no plan says how many VMs fit', () => {
  expect(noPlan({ wanted: 3, now: 18, after: 18, proven: true }, 'the new VMs fit already')).toBe(
    'gpu: no plan: the new VMs fit already\n3 are wanted, and there is room for 18.\n',
  );
  expect(noPlan({ wanted: 3, now: 1, after: 2, proven: true }, 'no moves make room')).toBe(
    'gpu: no plan: no moves make room\n1 of 3 fit now, 2 after moves.\n',
  );
});
