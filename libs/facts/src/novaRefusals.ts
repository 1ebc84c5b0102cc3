/** The cause that Nova's own words name. Sources: nova/exception.py, nova/conductor/tasks/live_migrate.py, nova/compute/manager.py. */
import type { TaskReasonCode } from './taskReasons.ts';

/** The first that matches counts. */
const TEXTS: readonly (readonly [RegExp, TaskReasonCode])[] = [
  // InstanceInvalidState, OperationNotSupportedForVTPM and similar ones.
  [/\bin (power_state|vm_state|task_state) \S+\. Cannot /i, 'server-refused'],
  [/\bnot supported for .*instance|cannot be live.?migrated|is not migratable/i, 'server-refused'],
  [/instance group policy was violated/i, 'group-violated'],
  [/binding failed for port|network-vif-plugged|virtual interface creation failed|port ?binding/i, 'network-refused'],
  [
    /timed out waiting for a reply|MessagingTimeout|MessageDeliveryFailure|DBConnectionError|OperationalError|Lost connection|Connection to .* (refused|failed)|keystone|placement.*(unavailable|could not be reached)|ServiceUnavailable/i,
    'nova-internal',
  ],
  [/insufficient compute resources|claim (pci|resources)|numa topology cannot fit/i, 'claim-refused'],
  [/no valid host/i, 'no-valid-host'],
  [
    /pre-check|unacceptable cpu|cpu .*(compatib|feature)|hypervisor (type|version)|older (hypervisor )?version|(local|shared) storage|pci device/i,
    'precheck-refused',
  ],
];

/**
 * The cause of a refusal or of a failed migration by Nova's text; null when the text names none that is known.
 *
 * @param move the hosts by their names as Nova's services have them
 */
export function causeOfText(
  text: string,
  move: { readonly from: string; readonly destination: string },
): TaskReasonCode | null {
  const [, unavailable] = /compute service of (\S+) is unavailable/i.exec(text) ?? [];
  if (unavailable === move.destination) return 'destination-unavailable';
  if (unavailable !== undefined) return 'source-unavailable';
  return TEXTS.find(([pattern]) => pattern.test(text))?.[1] ?? null;
}
