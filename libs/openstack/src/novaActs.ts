import type { ActOptions, NovaTransport } from './novaTransport.ts';
import type { ActionOutcome } from './novaTypes.ts';

/** Requests that change something. */
export interface NovaActs {
  /**
   * Asks Nova to live-migrate a server to a service host that the scheduler verifies (`block_migration: "auto"`). Sent once.
   * `accepted`: Nova said 202; it names no migration, see `listMigrations`. `unknown`: the request may have reached Nova (the
   * connection broke, the answer was neither 202 nor a 4xx, or the caller's signal aborted it on its way).
   * `force` skips the scheduler and exists only below 2.68.
   *
   * @throws BadRequest, Forbidden, NotFound, Conflict, Unauthorized, MicroversionUnsupported; NotSent (`checkSend` refused),
   * Unreachable and Timeout only when the request was certainly not sent.
   */
  liveMigrate(
    request: { readonly serverId: string; readonly host: string; readonly force?: boolean },
    options: ActOptions,
  ): Promise<ActionOutcome>;
  /**
   * Asks Nova to migrate a server cold to a service host, in another cell too where its policy grants that. Sent once.
   *
   * @throws as `liveMigrate`.
   */
  coldMigrate(
    request: { readonly serverId: string; readonly host: string },
    options: ActOptions,
  ): Promise<ActionOutcome>;
  /**
   * Asks Nova to give a server another flavor; Nova chooses the host. Sent once.
   *
   * @throws as `liveMigrate`.
   */
  resize(
    request: { readonly serverId: string; readonly flavorId: string },
    options: ActOptions,
  ): Promise<ActionOutcome>;
  /**
   * Confirms or reverts a cold migration or a resize in VERIFY_RESIZE. Sent once; a second request is refused.
   *
   * @throws BadRequest (one is confirmed already), Conflict (not in VERIFY_RESIZE, or being reverted) and as `liveMigrate`.
   */
  settleResize(
    request: { readonly serverId: string; readonly act: 'confirm' | 'revert' },
    options: ActOptions,
  ): Promise<ActionOutcome>;
  /**
   * Enables a nova-compute service, which clears its reason, or disables it with a reason of 1 to 255 characters. Sent once.
   * Nova compares nothing: the last writer wins.
   *
   * @throws BadRequest, NotFound and as `liveMigrate`.
   */
  updateService(
    request:
      | { readonly serviceId: string; readonly status: 'enabled'; readonly disabledReason?: undefined }
      | { readonly serviceId: string; readonly status: 'disabled'; readonly disabledReason: string },
    options: ActOptions,
  ): Promise<ActionOutcome>;
  /**
   * Asks Nova to abort a live migration: a running one, since 2.65 also a queued or preparing one. Sent once; the migration
   * may still win the race.
   *
   * @throws BadRequest (not in a state to be aborted), NotFound, Conflict and as `liveMigrate`.
   */
  abortMigration(
    request: { readonly serverId: string; readonly migrationId: number },
    options: ActOptions,
  ): Promise<ActionOutcome>;
}

export function novaActs({ act }: NovaTransport): NovaActs {
  return {
    liveMigrate: ({ serverId, host, force = false }, options) =>
      act(
        force ? 'forceLiveMigrate' : 'liveMigrate',
        action(serverId, { 'os-migrateLive': { host, block_migration: 'auto', ...(force ? { force: true } : {}) } }),
        options,
      ),

    coldMigrate: ({ serverId, host }, options) => act('coldMigrate', action(serverId, { migrate: { host } }), options),

    resize: ({ serverId, flavorId }, options) =>
      act('resize', action(serverId, { resize: { flavorRef: flavorId } }), options),

    settleResize: ({ serverId, act: how }, options) =>
      how === 'confirm'
        ? act('confirmResize', { ...action(serverId, { confirmResize: null }), expect: [204] }, options)
        : act('revertResize', action(serverId, { revertResize: null }), options),

    updateService: ({ serviceId, status, disabledReason }, options) =>
      act(
        'updateService',
        {
          method: 'PUT',
          path: `os-services/${encodeURIComponent(serviceId)}`,
          route: '/os-services/{id}',
          json: { status, ...(status === 'disabled' ? { disabled_reason: disabledReason } : {}) },
          expect: [200],
        },
        options,
      ),

    abortMigration: ({ serverId, migrationId }, options) =>
      act(
        'abortMigration',
        {
          method: 'DELETE',
          path: `servers/${encodeURIComponent(serverId)}/migrations/${migrationId}`,
          route: '/servers/{id}/migrations/{migrationId}',
        },
        options,
      ),
  };
}

/** The request of an action on a server. */
const action = (serverId: string, json: unknown) =>
  ({
    method: 'POST',
    path: `servers/${encodeURIComponent(serverId)}/action`,
    route: '/servers/{id}/action',
    json,
  }) as const;
