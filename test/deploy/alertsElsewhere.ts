/**
 * Alerts that `faults.e2e.test.ts` does not make fire, because their faults need what is not there: for each, the test that
 * makes the fault, or as much of it as there is, and where it is. `alerts.test.yml` has each rule fire on series.
 */
export const ALERTS_ELSEWHERE: Readonly<Record<string, readonly [file: string, test: string]>> = {
  KronosInventoryDiffers: [
    'libs/inventory/src/inventory.unit.test.ts',
    'has the hosts read that differ, and the servers that left them',
  ],
  KronosNotificationsLost: [
    'services/scorer/src/notifications.openstack.test.ts',
    'after RabbitMQ was stopped, the next comparison makes the list equal to that of Nova',
  ],
  KronosNotificationsRejected: [
    'services/scorer/src/notifications.int.test.ts',
    'rejects what it cannot read, names it, and loses nothing else',
  ],
  KronosInventoryUntrusted: [
    'services/scorer/src/notifications.int.test.ts',
    'reads the list of each host in every cycle until its nova-compute is heard',
  ],
  KronosResizeLate: ['libs/status/src/judge.unit.test.ts', 'a server stays in VERIFY_RESIZE'],
  KronosDeliveriesLost: [
    'services/executor/src/act.unit.test.ts',
    'is refused once its delivery is lost, though nobody has said so yet',
  ],
  KronosForcedMigration: [
    'services/executor/src/executor.int.test.ts',
    'goes past the scheduler below 2.68, and every such move is recorded',
  ],
  KronosLabelsUnmatched: ['libs/observation/src/readings.unit.test.ts', 'records labels that fit no host, with a note'],
  KronosFoldLag: ['deploy/prometheus/alerts.test.yml', 'KronosFoldLag fires'],
  KronosArchiveBehind: [
    'services/ledger/src/archive/archive.int.test.ts',
    'follows the log, over restarts, and its last words are in it',
  ],
};
