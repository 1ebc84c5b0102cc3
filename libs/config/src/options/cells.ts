import { MAX_PROPOSAL_SECONDS } from '@kronos/contracts/limits';
import { type CellAggregate, parseCellMap, parseVerify } from '../kinds.ts';
import { bool, CELLS, choice, decimal, EXECUTOR, integer, make, SCORER, seconds } from '../option.ts';

/** The options of the section `[cells]`. */
export const cells = {
  aggregates: make<readonly CellAggregate[]>('cells', [], {
    takes: 'a comma list of CELL:AGGREGATE',
    parse: parseCellMap,
    by: CELLS,
    help: 'Aggregates between which kronos cells plan may move servers, and the cell of their hosts, e.g. cell1:old, cell2:new. Each of them is in the scope of [engine]. Empty: moves between cells are off.',
  }),
  volumes_shared: bool(false, {
    by: SCORER,
    help: 'Every cell reaches the same volumes. false: a server with a volume does not leave its cell.',
  }),
  networks_shared: bool(false, {
    by: SCORER,
    help: 'Every cell reaches the same networks. false: a server with a port does not leave its cell.',
  }),
  max_image_gib: integer(0, {
    min: 0,
    by: SCORER,
    help: 'Largest image in GiB that the image store takes. The local disk of a server that leaves its cell becomes an image; a server with a larger one stays. 0: no limit.',
  }),
  cross_cell_weight: decimal(1, {
    min: 0,
    max: 1000,
    by: SCORER,
    help: "How much a destination in the server's own cell is preferred. 1 outweighs any difference in free memory; 0: no preference.",
  }),
  downtime_fixed: seconds(60, {
    min: 0,
    by: SCORER,
    help: 'Expected downtime of a move, without the copy of local disks. Plans show it; nothing waits for it.',
  }),
  downtime_per_gib: seconds(20, {
    min: 0,
    by: SCORER,
    help: 'Expected additional downtime per GiB of local disk that leaves its cell.',
  }),
  approval_ttl: seconds(3600, {
    min: 1,
    max: MAX_PROPOSAL_SECONDS,
    by: SCORER,
    help: 'How long a plan between cells waits for approval before it expires.',
  }),
  plan_ttl: seconds(86400, {
    min: 1,
    max: MAX_PROPOSAL_SECONDS,
    by: SCORER,
    help: 'How long after the approval of its plan a move between cells may start; later it is cancelled.',
  }),
  max_concurrent_resizes: integer(2, {
    min: 1,
    by: EXECUTOR,
    help: 'Concurrency limit: moves between cells in flight per aggregate, over all replicas of the executor. A move in VERIFY_RESIZE counts.',
  }),
  max_outbound_per_host: integer(1, {
    min: 1,
    by: EXECUTOR,
    help: 'Concurrency limit: moves between cells in flight off one host.',
  }),
  max_inbound_per_host: integer(1, {
    min: 1,
    by: EXECUTOR,
    help: 'Concurrency limit: moves between cells in flight onto one host.',
  }),
  verify: make('text', 'none', {
    takes: 'none, tcp:PORT or command:COMMAND',
    parse: parseVerify,
    by: EXECUTOR,
    help: 'Additional check of a moved server in VERIFY_RESIZE. tcp:PORT: one of its addresses accepts a connection. command:COMMAND: the command ends with status 0; $KRONOS_SERVER, $KRONOS_HOST and $KRONOS_ADDRESSES describe the server. A server that was stopped is not checked in this way.',
  }),
  verify_seconds: seconds(60, {
    min: 0,
    max: 86400,
    by: SCORER,
    help: 'How long the checks of a moved server must succeed before confirm=auto confirms the move. Recorded with each plan, as confirm is.',
  }),
  verify_timeout: seconds(600, {
    min: 1,
    max: 86400,
    by: EXECUTOR,
    help: 'How long after VERIFY_RESIZE a check may fail before the executor reverts the move.',
  }),
  confirm: choice(['auto', 'manual'], 'auto', {
    by: SCORER,
    help: 'auto: the executor confirms a move after verify_seconds of success. manual: a move waits for kronos cells confirm or revert. Both accept it when somebody else confirms or reverts.',
  }),
} as const;
