/** Nova's power states (nova/compute/power_state.py), by their numbers. */
const NAMES: Readonly<Record<number, string>> = {
  0: 'NOSTATE',
  1: 'RUNNING',
  3: 'PAUSED',
  4: 'SHUTDOWN',
  6: 'CRASHED',
  7: 'SUSPENDED',
};

/** Whether Nova live-migrates a guest in this power state: nova/conductor/tasks/live_migrate.py `_check_instance_is_active`. */
export const livePowerState = (state: number): boolean => state === 1 || state === 3;

/** Nova's name of a power state; for one that is unknown, its number. */
export const powerStateName = (state: number): string => NAMES[state] ?? String(state);
