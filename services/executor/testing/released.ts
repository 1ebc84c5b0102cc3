import { testLog } from '@kronos/projections/testing';
import type { Task } from '../src/taskFacts.ts';
import { sampleTask } from './sample.ts';

/** A log with a released plan of three moves off different hosts. */
export function released() {
  const log = testLog('gpu');
  log.configured();
  const planId = log.released([
    { serverId: 'a', from: 'h1', to: 'h2' },
    { serverId: 'b', from: 'h3', to: 'h4' },
    { serverId: 'c', from: 'h5', to: 'h2' },
  ]);
  log.dispatched(planId, 3);
  const id = (step: number): string => `${planId}-s${step}`;
  const task = (step: number, changes: Partial<Task> = {}): Task => {
    const facts = log.state().tasks.get(id(step))?.step;
    if (facts === undefined) throw new Error('no such step');
    const { delaySeconds: _, ...known } = facts;
    return sampleTask({ ...known, planId, destination: facts.to, aggregate: 'gpu', ...changes });
  };
  return { log, id, task };
}
