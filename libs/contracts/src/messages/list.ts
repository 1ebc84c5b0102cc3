import type { Family } from '../names.ts';
import { aggregatePaused } from './aggregatePaused.ts';
import { aggregateResumed } from './aggregateResumed.ts';
import { alarmRaised } from './alarmRaised.ts';
import { alarmResolved } from './alarmResolved.ts';
import { capacityAsked } from './capacityAsked.ts';
import { cellsMoveAsked } from './cellsMoveAsked.ts';
import { cycleDecided } from './cycleDecided.ts';
import { evaluationRequested } from './evaluationRequested.ts';
import { eventSkipped } from './eventSkipped.ts';
import { hostActFailed } from './hostActFailed.ts';
import { hostClaimed } from './hostClaimed.ts';
import { hostDisabled } from './hostDisabled.ts';
import { hostDrainAsked } from './hostDrainAsked.ts';
import { hostDrained } from './hostDrained.ts';
import { hostEnabled } from './hostEnabled.ts';
import { hostLeftDisabled } from './hostLeftDisabled.ts';
import { hostReleased } from './hostReleased.ts';
import { hostUndrainAsked } from './hostUndrainAsked.ts';
import { installationCreated } from './installationCreated.ts';
import { instanceQuarantined } from './instanceQuarantined.ts';
import { instanceUnquarantined } from './instanceUnquarantined.ts';
import { inventoryReported } from './inventoryReported.ts';
import { logSeen } from './logSeen.ts';
import { migrationAborted } from './migrationAborted.ts';
import { migrationAbortRefused } from './migrationAbortRefused.ts';
import { migrationAbortRequested } from './migrationAbortRequested.ts';
import { migrationCancelled } from './migrationCancelled.ts';
import { migrationClosed } from './migrationClosed.ts';
import { migrationCompleted } from './migrationCompleted.ts';
import { migrationConfirmAsked } from './migrationConfirmAsked.ts';
import { migrationConfirmRequested } from './migrationConfirmRequested.ts';
import { migrationFailed } from './migrationFailed.ts';
import { migrationObserved } from './migrationObserved.ts';
import { migrationRequested } from './migrationRequested.ts';
import { migrationRevertAsked } from './migrationRevertAsked.ts';
import { migrationRevertRequested } from './migrationRevertRequested.ts';
import { migrationSkipped } from './migrationSkipped.ts';
import { migrationStarted } from './migrationStarted.ts';
import { migrationSuspected } from './migrationSuspected.ts';
import { migrationVerified } from './migrationVerified.ts';
import { migrationVerifying } from './migrationVerifying.ts';
import { planApproved } from './planApproved.ts';
import { planDispatched } from './planDispatched.ts';
import { plannerConfigured } from './plannerConfigured.ts';
import { planProposed } from './planProposed.ts';
import { planRejected } from './planRejected.ts';
import { planWithdrawn } from './planWithdrawn.ts';
import { serviceReported } from './serviceReported.ts';
import { snapshotTaken } from './snapshotTaken.ts';
import { stateCheckpointed } from './stateCheckpointed.ts';

/** The definition of every message, by its subject family. Every table of message types is made from this list. */
export const definitions = {
  snapshots: [snapshotTaken],
  plans: [cycleDecided, planProposed, planDispatched, planWithdrawn, plannerConfigured],
  migrations: [migrationRequested],
  results: [
    migrationStarted,
    migrationObserved,
    migrationCompleted,
    migrationFailed,
    migrationSkipped,
    migrationSuspected,
    migrationAbortRequested,
    migrationAbortRefused,
    migrationVerifying,
    migrationVerified,
    migrationConfirmRequested,
    migrationRevertRequested,
    hostClaimed,
    hostDisabled,
    hostDrained,
    hostEnabled,
    hostLeftDisabled,
    hostActFailed,
  ],
  controls: [
    aggregatePaused,
    aggregateResumed,
    planApproved,
    planRejected,
    instanceQuarantined,
    instanceUnquarantined,
    migrationCancelled,
    migrationAborted,
    migrationClosed,
    evaluationRequested,
    hostDrainAsked,
    hostUndrainAsked,
    hostReleased,
    cellsMoveAsked,
    capacityAsked,
    migrationConfirmAsked,
    migrationRevertAsked,
    installationCreated,
  ],
  custody: [eventSkipped],
  ledger: [stateCheckpointed, logSeen],
  inventory: [inventoryReported],
  services: [serviceReported],
  alarms: [alarmRaised, alarmResolved],
} as const satisfies Record<Family, readonly unknown[]>;
