/** A scenario that cannot be built: names the place (`hosts[3].vcpus`) and the remedy. */
export class ScenarioError extends Error {
  readonly code = 'KRONOS_SIM_SCENARIO';
  override readonly name = 'ScenarioError';
}

/** An act or a fault that the simulated cloud cannot apply: an unknown server, host, group or field. */
export class ActError extends Error {
  readonly code = 'KRONOS_SIM_ACT';
  override readonly name = 'ActError';
}

/**
 * Nova's answer to a call that it refuses: the status, and the sentence of the body. The texts are Nova's own
 * (`nova/exception.py`, `nova/api/openstack/common.py`), since clients match on them.
 */
export class NovaRefusal extends Error {
  readonly code = 'KRONOS_SIM_NOVA_REFUSAL';
  override readonly name = 'NovaRefusal';
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** nova/api/openstack/wsgi.py, for an exception that it does not expect, by its class. */
export const unexpected = (exception: string): NovaRefusal =>
  new NovaRefusal(
    500,
    `Unexpected API Error. Please report this at http://bugs.launchpad.net/nova/ and attach the Nova API log if possible.\n<class '${exception}'>`,
  );

/** The answer of Nova's API when it cannot reach the database of a cell. */
export const cellUnreached = (): NovaRefusal => unexpected('oslo_db.exception.DBConnectionError');
