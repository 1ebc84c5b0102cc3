/** Schemas of Nova's answers. Unknown fields are ignored; missing required fields are errors. */
import { z } from 'zod';
import type {
  Aggregate,
  ComputeService,
  Flavor,
  Hypervisor,
  InstanceAction,
  Migration,
  NamedFlavor,
  Server,
  ServerGroup,
  ServerMigration,
  ServerTopology,
} from './novaTypes.ts';

/** Nova writes times in UTC, with or without a `Z`. */
const time = z.string().transform((text, context) => {
  const withZone = /(?:Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`;
  const at = new Date(withZone.replace(' ', 'T'));
  if (!Number.isNaN(at.getTime())) return at.toISOString();
  context.addIssue({ code: 'custom', message: `not a time: "${text}"` });
  return z.NEVER;
});
const optionalTime = time.nullish().transform((value) => value ?? null);
const optionalText = z
  .string()
  .nullish()
  .transform((value) => (value === undefined || value === '' ? null : value));
const bytes = z
  .number()
  .nullish()
  .transform((value) => value ?? null);
const stringMap = z.record(z.string(), z.string());
/** Nova omits a value that its policy hides from the user. */
const visible = (right: string) => ({
  error: (issue: { input?: unknown }) => (issue.input === undefined ? `missing; the user needs ${right}` : undefined),
});

const upDown = z
  .string()
  .nullish()
  .transform((value): 'up' | 'down' | 'unknown' => (value === 'up' || value === 'down' ? value : 'unknown'));
const enabledDisabled = z
  .string()
  .nullish()
  .transform((value): 'enabled' | 'disabled' | 'unknown' =>
    value === 'enabled' || value === 'disabled' ? value : 'unknown',
  );

/** Reads by `first` what `test` picks and by `second` the rest, with the errors of that one schema (a union would hide them). */
function either<A extends z.ZodType, B extends z.ZodType>(test: (raw: unknown) => boolean, first: A, second: B) {
  return z.unknown().transform((raw, context): z.output<A> | z.output<B> => {
    const result = test(raw) ? first.safeParse(raw) : second.safeParse(raw);
    if (result.success) return result.data;
    for (const { path, message } of result.error.issues) context.addIssue({ code: 'custom', path, message });
    return z.NEVER;
  });
}

export const aggregatesSchema = z.object({
  aggregates: z.array(
    z
      .object({
        id: z.number(),
        uuid: z.string(),
        name: z.string(),
        availability_zone: optionalText,
        hosts: z.array(z.string()),
        metadata: stringMap.default({}),
      })
      .transform(
        (raw): Aggregate => ({
          id: raw.id,
          uuid: raw.uuid,
          name: raw.name,
          availabilityZone: raw.availability_zone,
          hosts: raw.hosts,
          metadata: raw.metadata,
        }),
      ),
  ),
});

export const servicesSchema = z.object({
  services: z.array(
    z
      .object({
        id: optionalText,
        host: z.string(),
        binary: z.string(),
        zone: optionalText,
        status: optionalText,
        state: upDown,
        forced_down: z.boolean().nullish(),
        disabled_reason: optionalText,
        updated_at: optionalTime,
      })
      .transform(
        (raw): ComputeService => ({
          id: raw.id,
          host: raw.host,
          binary: raw.binary,
          zone: raw.zone,
          status: enabledDisabled.parse(raw.status),
          state: raw.state,
          cellDown: raw.status === 'UNKNOWN',
          forcedDown: raw.forced_down ?? false,
          disabledReason: raw.disabled_reason,
          updatedAt: raw.updated_at,
        }),
      ),
  ),
});

const linksSchema = z
  .array(z.object({ rel: z.string(), href: z.string() }))
  .nullish()
  .transform((links) => (links ?? []).some((link) => link.rel === 'next'));

export const hypervisorsSchema = z.object({
  hypervisors: z.array(
    z
      .object({
        id: z.string(),
        hypervisor_hostname: z.string(),
        hypervisor_type: z.string(),
        hypervisor_version: z.number(),
        state: upDown,
        status: enabledDisabled,
        service: z.object({ id: z.string(), host: z.string(), disabled_reason: optionalText }),
      })
      .transform(
        (raw): Hypervisor => ({
          id: raw.id,
          hypervisorHostname: raw.hypervisor_hostname,
          hypervisorType: raw.hypervisor_type,
          hypervisorVersion: raw.hypervisor_version,
          state: raw.state,
          status: raw.status,
          service: { id: raw.service.id, host: raw.service.host, disabledReason: raw.service.disabled_reason },
        }),
      ),
  ),
  hypervisors_links: linksSchema,
});

/** Only the fields that place servers on hosts. Below 2.75 an empty host has no list. */
export const hypervisorServersSchema = z.object({
  hypervisors: z.array(
    z
      .object({
        id: z.string(),
        service: z.object({ host: z.string() }),
        servers: z.array(z.object({ uuid: z.string() })).default([]),
      })
      .transform((raw) => ({
        id: raw.id,
        host: raw.service.host,
        serverIds: raw.servers.map((server) => server.uuid),
      })),
  ),
  hypervisors_links: linksSchema,
});

const flavorSchema = z
  .object({
    original_name: z.string(),
    vcpus: z.number(),
    ram: z.number(),
    disk: z.number(),
    ephemeral: z.number(),
    // `""` stood for 0 in flavors below 2.75.
    swap: z.union([z.number(), z.literal('').transform(() => 0)]),
    extra_specs: z.record(
      z.string(),
      z.string(),
      visible('to see flavor extra specs (policy os_compute_api:servers:show:flavor-extra-specs)'),
    ),
  })
  .transform(
    (raw): Flavor => ({
      name: raw.original_name,
      vcpus: raw.vcpus,
      ramMb: raw.ram,
      rootGb: raw.disk,
      ephemeralGb: raw.ephemeral,
      swapMb: raw.swap,
      extraSpecs: raw.extra_specs,
    }),
  );

export const flavorsSchema = z.object({
  flavors: z.array(
    z
      .object({
        id: z.string(),
        name: z.string(),
        vcpus: z.number(),
        ram: z.number(),
        disk: z.number(),
        'OS-FLV-EXT-DATA:ephemeral': z.number(),
        // `""` stood for 0 in flavors below 2.75.
        swap: z.union([z.number(), z.literal('').transform(() => 0)]),
        extra_specs: z.record(
          z.string(),
          z.string(),
          visible('to see flavor extra specs (policy os_compute_api:os-flavor-extra-specs:index)'),
        ),
      })
      .transform(
        (raw): NamedFlavor => ({
          id: raw.id,
          name: raw.name,
          vcpus: raw.vcpus,
          ramMb: raw.ram,
          rootGb: raw.disk,
          ephemeralGb: raw['OS-FLV-EXT-DATA:ephemeral'],
          swapMb: raw.swap,
          extraSpecs: raw.extra_specs,
        }),
      ),
  ),
  flavors_links: linksSchema,
});

const lostFlavor = z.object({}).transform(() => null);

const cellDownServer = z
  .object({
    id: z.string(),
    status: z.literal('UNKNOWN'),
    tenant_id: z.string(),
    created: time,
  })
  .transform(
    (raw): Server => ({
      id: raw.id,
      name: null,
      internalName: null,
      status: raw.status,
      cellDown: true,
      vmState: null,
      taskState: null,
      powerState: null,
      host: null,
      hypervisorHostname: null,
      projectId: raw.tenant_id,
      userId: null,
      flavor: null,
      imageProperties: undefined,
      bootFromVolume: false,
      volumeIds: [],
      addresses: [],
      macs: [],
      metadata: {},
      tags: [],
      locked: false,
      lockedReason: null,
      availabilityZone: null,
      pinnedAvailabilityZone: undefined,
      groupIds: undefined,
      createdAt: raw.created,
      updatedAt: null,
      fault: null,
    }),
  );

const ADMIN = 'to see extended server attributes (policy os_compute_api:os-extended-server-attributes)';

/** A port with several addresses, or with a floating one, is there several times. */
const macsOf = (addresses: readonly { readonly 'OS-EXT-IPS-MAC:mac_addr'?: string | undefined }[]): string[] => [
  ...new Set(addresses.flatMap((one) => one['OS-EXT-IPS-MAC:mac_addr'] ?? [])),
];

const fullServer = z
  .object({
    id: z.string(),
    name: z.string(),
    status: z.string(),
    tenant_id: z.string(),
    user_id: optionalText,
    metadata: stringMap,
    tags: z.array(z.string()),
    image: z.union([
      z.literal(''),
      z.null(),
      z.object({ id: z.string(), properties: z.record(z.string(), z.unknown()).optional() }),
    ]),
    // Nova answers {} for a flavor that it has lost.
    flavor: either((raw) => isRecord(raw) && Object.keys(raw).length === 0, lostFlavor, flavorSchema),
    created: time,
    updated: optionalTime,
    locked: z.boolean(),
    locked_reason: optionalText,
    server_groups: z.array(z.string()).optional(),
    pinned_availability_zone: z.string().nullish(),
    fault: z.object({ code: z.number(), message: z.string(), created: time }).nullish(),
    'OS-EXT-AZ:availability_zone': optionalText,
    'OS-EXT-SRV-ATTR:host': z.string(visible(ADMIN)).nullable(),
    'OS-EXT-SRV-ATTR:hypervisor_hostname': optionalText,
    'OS-EXT-SRV-ATTR:instance_name': optionalText,
    'OS-EXT-STS:vm_state': z.string(),
    'OS-EXT-STS:task_state': z.string().nullable(),
    'OS-EXT-STS:power_state': z.number().nullish(),
    'os-extended-volumes:volumes_attached': z.array(z.object({ id: z.string() })).default([]),
    addresses: z
      .record(z.string(), z.array(z.object({ addr: z.string(), 'OS-EXT-IPS-MAC:mac_addr': z.string().optional() })))
      .default({}),
  })
  .transform(
    (raw): Server => ({
      id: raw.id,
      name: raw.name,
      internalName: raw['OS-EXT-SRV-ATTR:instance_name'],
      status: raw.status,
      cellDown: false,
      vmState: raw['OS-EXT-STS:vm_state'],
      taskState: raw['OS-EXT-STS:task_state'],
      powerState: raw['OS-EXT-STS:power_state'] ?? null,
      host: raw['OS-EXT-SRV-ATTR:host'],
      hypervisorHostname: raw['OS-EXT-SRV-ATTR:hypervisor_hostname'],
      projectId: raw.tenant_id,
      userId: raw.user_id,
      flavor: raw.flavor,
      imageProperties:
        raw.image === null || raw.image === '' || raw.image.properties === undefined
          ? undefined
          : textValues(raw.image.properties),
      bootFromVolume: raw.image === null || raw.image === '',
      volumeIds: raw['os-extended-volumes:volumes_attached'].map((volume) => volume.id),
      addresses: Object.values(raw.addresses).flatMap((ofNetwork) => ofNetwork.map(({ addr }) => addr)),
      macs: macsOf(Object.values(raw.addresses).flat()),
      metadata: raw.metadata,
      tags: raw.tags,
      locked: raw.locked,
      lockedReason: raw.locked_reason,
      availabilityZone: raw['OS-EXT-AZ:availability_zone'],
      pinnedAvailabilityZone:
        raw.pinned_availability_zone === undefined ? undefined : raw.pinned_availability_zone || null,
      groupIds: raw.server_groups,
      createdAt: raw.created,
      updatedAt: raw.updated,
      fault:
        raw.fault === null || raw.fault === undefined
          ? null
          : { code: raw.fault.code, message: raw.fault.message, createdAt: raw.fault.created },
    }),
  );

/** A server of a cell that is down has no name (2.69); every other must be complete. */
const serverSchema = either(
  (raw) => isRecord(raw) && raw.status === 'UNKNOWN' && raw.name === undefined,
  cellDownServer,
  fullServer,
);

export const serverIdsSchema = z.object({
  servers: z.array(z.object({ id: z.string() })),
  servers_links: linksSchema,
});
export const serversSchema = z.object({ servers: z.array(serverSchema), servers_links: linksSchema });
export const oneServerSchema = z.object({ server: serverSchema });

/** Nova leaves out `host_node` and `cpu_pinning` for those who may not see the host. */
export const serverTopologySchema = z
  .object({
    nodes: z.array(
      z.object({
        host_node: z.int().nullish(),
        vcpu_set: z.array(z.int()).nullish(),
        memory_mb: z.number(),
        cpu_pinning: z.record(z.string(), z.int()).nullish(),
      }),
    ),
    pagesize_kb: z.int().nullish(),
  })
  .transform(
    ({ nodes, pagesize_kb }): ServerTopology => ({
      nodes: nodes.map(({ host_node, vcpu_set, memory_mb, cpu_pinning }) => ({
        hostNode: host_node ?? null,
        // Pinned CPUs of a mixed server may be missing in vcpu_set: Nova keeps them apart.
        vcpus: new Set([...(vcpu_set ?? []), ...Object.keys(cpu_pinning ?? {}).map(Number)]).size,
        pinned: cpu_pinning === undefined ? null : Object.keys(cpu_pinning ?? {}).length,
        memoryMb: memory_mb,
      })),
      pageSizeKb: pagesize_kb ?? null,
    }),
  );

export const serverGroupsSchema = z.object({
  server_groups: z.array(
    z
      .object({
        id: z.string(),
        name: z.string(),
        policy: z.string().nullish(),
        rules: z.object({ max_server_per_host: z.coerce.number().int().positive().optional() }).nullish(),
        policies: z.array(z.string()).nullish(),
        members: z.array(z.string()),
        project_id: optionalText,
      })
      .transform((raw): ServerGroup => {
        const policy = raw.policy ?? raw.policies?.[0] ?? null;
        return {
          id: raw.id,
          name: raw.name,
          policy,
          // Nova's API refuses the rule for the other policies.
          maxServersPerHost: policy === 'anti-affinity' ? (raw.rules?.max_server_per_host ?? 1) : 1,
          memberIds: raw.members,
          projectId: raw.project_id,
        };
      }),
  ),
});

export const migrationsSchema = z.object({
  migrations: z.array(
    z
      .object({
        id: z.number(),
        uuid: z.string(),
        instance_uuid: z.string(),
        migration_type: z.string(),
        status: z.string(),
        source_compute: optionalText,
        dest_compute: optionalText,
        old_instance_type_id: z.number().nullish(),
        new_instance_type_id: z.number().nullish(),
        created_at: time,
        updated_at: optionalTime,
      })
      .transform(
        (raw): Migration => ({
          id: raw.id,
          uuid: raw.uuid,
          serverId: raw.instance_uuid,
          type: raw.migration_type,
          status: raw.status,
          sourceCompute: raw.source_compute,
          destCompute: raw.dest_compute,
          oldTypeId: raw.old_instance_type_id ?? null,
          newTypeId: raw.new_instance_type_id ?? null,
          createdAt: raw.created_at,
          updatedAt: raw.updated_at,
        }),
      ),
  ),
  migrations_links: linksSchema,
});

const serverMigrationSchema = z
  .object({
    id: z.number(),
    uuid: z.string(),
    server_uuid: z.string(),
    status: z.string(),
    source_compute: optionalText,
    dest_compute: optionalText,
    memory_total_bytes: bytes,
    memory_processed_bytes: bytes,
    memory_remaining_bytes: bytes,
    disk_total_bytes: bytes,
    disk_processed_bytes: bytes,
    disk_remaining_bytes: bytes,
    created_at: time,
    updated_at: optionalTime,
  })
  .transform(
    (raw): ServerMigration => ({
      id: raw.id,
      uuid: raw.uuid,
      serverId: raw.server_uuid,
      status: raw.status,
      sourceCompute: raw.source_compute,
      destCompute: raw.dest_compute,
      memoryTotalBytes: raw.memory_total_bytes,
      memoryProcessedBytes: raw.memory_processed_bytes,
      memoryRemainingBytes: raw.memory_remaining_bytes,
      diskTotalBytes: raw.disk_total_bytes,
      diskProcessedBytes: raw.disk_processed_bytes,
      diskRemainingBytes: raw.disk_remaining_bytes,
      createdAt: raw.created_at,
      updatedAt: raw.updated_at,
    }),
  );

export const oneServerMigrationSchema = z.object({ migration: serverMigrationSchema });

const eventSchema = z.object({
  event: z.string(),
  start_time: time,
  finish_time: optionalTime,
  result: optionalText,
  traceback: optionalText,
  host: optionalText,
  details: optionalText,
});

const actionSchema = z
  .object({
    action: z.string(),
    instance_uuid: z.string(),
    request_id: z.string(),
    start_time: time,
    updated_at: optionalTime,
    message: optionalText,
    events: z.array(eventSchema).default([]),
  })
  .transform(
    (raw): InstanceAction => ({
      action: raw.action,
      serverId: raw.instance_uuid,
      requestId: raw.request_id,
      startedAt: raw.start_time,
      updatedAt: raw.updated_at,
      message: raw.message,
      events: raw.events.map((event) => ({
        event: event.event,
        startedAt: event.start_time,
        finishedAt: event.finish_time,
        result: event.result,
        traceback: event.traceback,
        host: event.host,
        details: event.details,
      })),
    }),
  );

export const instanceActionsSchema = z.object({ instanceActions: z.array(actionSchema), links: linksSchema });
export const oneInstanceActionSchema = z.object({ instanceAction: actionSchema });

const versionSchema = z.object({
  id: z.string(),
  status: z.string(),
  /** Nova's name for the highest microversion. */
  version: z.string().optional(),
  /** Placement's. */
  max_version: z.string().optional(),
  min_version: z.string().optional(),
});
export const versionsSchema = z.union([
  z.object({ version: versionSchema }).transform((raw) => [raw.version]),
  z.object({ versions: z.array(versionSchema) }).transform((raw) => raw.versions),
]);

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function textValues(values: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]));
}
