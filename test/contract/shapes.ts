import { z } from 'zod';

/** The exact forms of Nova's, Placement's and Keystone's answers: no field may be missing, none may be added. */

const uuid = z.string().regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
/** Keystone's ids. */
const hex = z.string().regex(/^[0-9a-f]{32}$/);
/** `2026-11-20T15:04:40.000000` */
const micros = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/);
/** `2026-11-20T15:04:40Z` */
const seconds = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
const link = z.strictObject({ rel: z.string(), href: z.string() });
const text = z.string();
const count = z.number().int();
const bytes = count.nullable();
/** Fields of one type. */
const each = <T, const N extends string>(type: T, ...names: N[]): Record<N, T> =>
  Object.fromEntries(names.map((name) => [name, type])) as Record<N, T>;

const serverBase = {
  id: uuid,
  ...each(
    text,
    'name',
    'status',
    'accessIPv4',
    'accessIPv6',
    'OS-DCF:diskConfig',
    'OS-EXT-AZ:availability_zone',
    'config_drive',
    'OS-EXT-SRV-ATTR:host',
    'OS-EXT-SRV-ATTR:hypervisor_hostname',
    'OS-EXT-STS:vm_state',
  ),
  ...each(hex, 'tenant_id', 'user_id'),
  ...each(seconds, 'created', 'updated'),
  ...each(count, 'progress', 'OS-EXT-STS:power_state'),
  ...each(z.null(), 'key_name', 'OS-SRV-USG:terminated_at'),
  'OS-SRV-USG:launched_at': micros,
  'OS-EXT-STS:task_state': text.nullable(),
  metadata: z.record(text, text),
  hostId: z.string().regex(/^[0-9a-f]{56}$/),
  addresses: z.strictObject({}),
  links: z.array(link).length(2),
  'OS-EXT-SRV-ATTR:instance_name': z.string().regex(/^instance-[0-9a-f]{8}$/),
  'os-extended-volumes:volumes_attached': z.array(z.unknown()).length(0),
};
const image = { id: uuid, links: z.array(link).length(1) };
const flavor = {
  ...each(count, 'vcpus', 'ram', 'disk', 'ephemeral', 'swap'),
  original_name: text,
  extra_specs: z.record(text, text),
};
const since3 = {
  ...each(
    text,
    'OS-EXT-SRV-ATTR:reservation_id',
    'OS-EXT-SRV-ATTR:hostname',
    'OS-EXT-SRV-ATTR:kernel_id',
    'OS-EXT-SRV-ATTR:ramdisk_id',
    'OS-EXT-SRV-ATTR:root_device_name',
  ),
  'OS-EXT-SRV-ATTR:launch_index': count,
  'OS-EXT-SRV-ATTR:user_data': z.null(),
};
const since73 = {
  host_status: text,
  ...each(text.nullable(), 'description', 'locked_reason'),
  trusted_image_certificates: z.null(),
  ...since3,
  locked: z.boolean(),
  tags: z.array(text),
};
/** At 2.96, without its image. */
const newest = { ...serverBase, ...since73, flavor: z.strictObject(flavor), pinned_availability_zone: text.nullable() };

/** A server of `servers/detail`, by microversion. */
export const serverForms: Readonly<Record<string, z.ZodType>> = {
  '2.1': z.strictObject({
    ...serverBase,
    image: z.strictObject(image),
    flavor: z.strictObject({ id: text, links: z.array(link).length(1) }),
  }),
  '2.47': z.strictObject({
    ...serverBase,
    ...since3,
    image: z.strictObject(image),
    flavor: z.strictObject(flavor),
    locked: z.boolean(),
    host_status: text,
    description: text.nullable(),
    tags: z.array(text),
  }),
  '2.90': z.strictObject({ ...serverBase, ...since73, image: z.strictObject(image), flavor: z.strictObject(flavor) }),
  '2.96': z.strictObject({ ...newest, image: z.strictObject(image) }),
  '2.100': z.strictObject({
    ...newest,
    image: z.strictObject({ ...image, properties: z.record(text, z.unknown()) }),
    scheduler_hints: z.record(text, z.unknown()),
  }),
};
/** `GET /servers/{id}` at 2.96. */
export const shownServer = z.strictObject({ ...newest, image: z.strictObject(image), server_groups: z.array(uuid) });

const migrationBase = {
  ...each(count, 'id', 'old_instance_type_id', 'new_instance_type_id'),
  ...each(text, 'source_compute', 'status'),
  ...each(text.nullable(), 'dest_compute', 'source_node', 'dest_node'),
  dest_host: z.null(),
  instance_uuid: uuid,
  created_at: micros,
  updated_at: micros.nullable(),
};
const linked = { links: z.array(link).length(2).optional() };
/** A row of os-migrations, by microversion. */
export const migrationForms: Readonly<Record<string, z.ZodType>> = {
  '2.22': z.strictObject(migrationBase),
  '2.23': z.strictObject({ ...migrationBase, ...linked, migration_type: text }),
  '2.59': z.strictObject({ ...migrationBase, ...linked, migration_type: text, uuid }),
  '2.80': z.strictObject({ ...migrationBase, ...linked, migration_type: text, uuid, user_id: hex, project_id: hex }),
};

const progressBase = {
  created_at: micros,
  ...each(text, 'dest_compute', 'dest_node', 'source_compute', 'source_node', 'status'),
  dest_host: z.null(),
  ...each(
    bytes,
    'disk_processed_bytes',
    'disk_remaining_bytes',
    'disk_total_bytes',
    'memory_processed_bytes',
    'memory_remaining_bytes',
    'memory_total_bytes',
  ),
  id: count,
  server_uuid: uuid,
  updated_at: micros.nullable(),
};
/** A migration of `/servers/{id}/migrations`, by microversion. */
export const progressForms: Readonly<Record<string, z.ZodType>> = {
  '2.23': z.strictObject(progressBase),
  '2.59': z.strictObject({ ...progressBase, uuid }),
  '2.80': z.strictObject({ ...progressBase, uuid, user_id: hex, project_id: hex }),
};

const actionBase = {
  action: text,
  instance_uuid: uuid,
  ...each(hex, 'user_id', 'project_id'),
  start_time: micros,
  message: text.nullable(),
  request_id: z.string().regex(/^req-/),
};
const eventBase = {
  event: text,
  start_time: micros,
  finish_time: micros.nullable(),
  ...each(text.nullable(), 'result', 'traceback'),
};
const hostId = z.string().regex(/^[0-9a-f]{56}$/);
/** `GET /servers/{id}/os-instance-actions/{req}`, by microversion. */
export const actionForms: Readonly<Record<string, z.ZodType>> = {
  '2.51': z.strictObject({ ...actionBase, events: z.array(z.strictObject(eventBase)) }),
  '2.58': z.strictObject({ ...actionBase, updated_at: micros, events: z.array(z.strictObject(eventBase)) }),
  '2.62': z.strictObject({
    ...actionBase,
    updated_at: micros,
    events: z.array(z.strictObject({ ...eventBase, host: text, hostId })),
  }),
  '2.84': z.strictObject({
    ...actionBase,
    updated_at: micros,
    events: z.array(z.strictObject({ ...eventBase, host: text, hostId, details: text.nullable() })),
  }),
};

const hypervisorBase = {
  ...each(text, 'hypervisor_hostname', 'hypervisor_type', 'host_ip'),
  state: z.enum(['up', 'down']),
  hypervisor_version: count,
  status: z.enum(['enabled', 'disabled']),
};
const sizes = {
  ...each(
    count,
    'vcpus',
    'memory_mb',
    'local_gb',
    'vcpus_used',
    'memory_mb_used',
    'local_gb_used',
    'free_ram_mb',
    'free_disk_gb',
    'current_workload',
    'running_vms',
    'disk_available_least',
  ),
};
const cpuInfo = z.strictObject({
  arch: text,
  model: text,
  vendor: text,
  features: z.array(text),
  topology: z.looseObject({ cores: count, threads: count, sockets: count }),
});
const numbered = { id: count, service: z.strictObject({ id: count, host: text, disabled_reason: text.nullable() }) };
const named = { id: uuid, service: z.strictObject({ id: uuid, host: text, disabled_reason: text.nullable() }) };
/** A hypervisor of `os-hypervisors/detail`, by microversion. */
export const hypervisorForms: Readonly<Record<string, z.ZodType>> = {
  '2.27': z.strictObject({ ...hypervisorBase, ...numbered, ...sizes, cpu_info: text }),
  '2.52': z.strictObject({ ...hypervisorBase, ...numbered, ...sizes, cpu_info: cpuInfo }),
  '2.53': z.strictObject({ ...hypervisorBase, ...named, ...sizes, cpu_info: cpuInfo }),
  '2.87': z.strictObject({ ...hypervisorBase, ...named, ...sizes, cpu_info: cpuInfo }),
  '2.88': z.strictObject({ ...hypervisorBase, ...named, uptime: text.nullable() }),
};

const serviceBase = {
  ...each(text, 'binary', 'host', 'zone'),
  state: z.enum(['up', 'down']),
  updated_at: micros,
  disabled_reason: text.nullable(),
  status: z.enum(['enabled', 'disabled']),
};
/** A service of os-services, by microversion. */
export const serviceForms: Readonly<Record<string, z.ZodType>> = {
  '2.10': z.strictObject({ ...serviceBase, id: count }),
  '2.52': z.strictObject({ ...serviceBase, id: count, forced_down: z.boolean() }),
  '2.53': z.strictObject({ ...serviceBase, id: uuid, forced_down: z.boolean() }),
};

const aggregateBase = {
  id: count,
  name: text,
  created_at: micros,
  updated_at: micros.nullable(),
  deleted_at: z.null(),
  availability_zone: text.nullable(),
  hosts: z.array(text),
  metadata: z.record(text, text),
  deleted: z.literal(false),
};
/** An aggregate of os-aggregates, by microversion. */
export const aggregateForms: Readonly<Record<string, z.ZodType>> = {
  '2.1': z.strictObject(aggregateBase),
  '2.41': z.strictObject({ ...aggregateBase, uuid }),
};

const groupBase = { id: uuid, name: text, members: z.array(uuid) };
const owned = { project_id: hex, user_id: hex };
/** A server group of os-server-groups, by microversion. */
export const groupForms: Readonly<Record<string, z.ZodType>> = {
  '2.12': z.strictObject({ ...groupBase, policies: z.array(text), metadata: z.strictObject({}) }),
  '2.63': z.strictObject({ ...groupBase, ...owned, policies: z.array(text), metadata: z.strictObject({}) }),
  '2.64': z.strictObject({
    ...groupBase,
    ...owned,
    policy: text,
    rules: z.strictObject({ max_server_per_host: count.optional() }),
  }),
};

const version = { id: text, status: text, version: text, min_version: text, updated: text };
export const novaVersions = z.strictObject({
  versions: z.array(z.strictObject({ ...version, links: z.array(link) })).length(2),
});
export const novaVersion = z.strictObject({
  version: z.strictObject({
    ...version,
    links: z.array(z.strictObject({ rel: text, href: text, type: text.optional() })),
    'media-types': z.array(z.strictObject({ base: text, type: text })),
  }),
});

/** Nova's errors: one key, which names the kind. */
export const novaError = (kind: string): z.ZodType =>
  z.strictObject({ [kind]: z.strictObject({ code: count, message: text }) });

const inventory = z.strictObject({
  ...each(count, 'total', 'reserved', 'min_unit', 'max_unit', 'step_size'),
  allocation_ratio: z.number(),
});
const resources = z.record(z.enum(['VCPU', 'MEMORY_MB', 'DISK_GB']), count);
const someResources = z.partialRecord(z.enum(['VCPU', 'MEMORY_MB', 'DISK_GB']), count);
const provider = { uuid, name: text, generation: count, links: z.array(link) };
export const placementForms = {
  versions: z.strictObject({
    versions: z
      .array(z.strictObject({ id: text, max_version: text, min_version: text, status: text, links: z.array(link) }))
      .length(1),
  }),
  providers: z.strictObject({
    resource_providers: z.array(
      z.strictObject({ ...provider, parent_provider_uuid: z.null(), root_provider_uuid: uuid }),
    ),
  }),
  oldProviders: z.strictObject({ resource_providers: z.array(z.strictObject(provider)) }),
  inventories: z.strictObject({
    resource_provider_generation: count,
    inventories: z.record(z.enum(['VCPU', 'MEMORY_MB', 'DISK_GB']), inventory),
  }),
  usages: z.strictObject({ resource_provider_generation: count, usages: resources }),
  traits: z.strictObject({ traits: z.array(text), resource_provider_generation: count }),
  aggregates: z.strictObject({ aggregates: z.array(uuid), resource_provider_generation: count }),
  allocations: z.strictObject({
    allocations: z.record(uuid, z.strictObject({ resources: someResources, consumer_generation: count })),
    resource_provider_generation: count,
  }),
  consumer: z.strictObject({
    allocations: z.record(uuid, z.strictObject({ resources: someResources, generation: count })),
    project_id: hex,
    user_id: hex,
    consumer_generation: count,
  }),
  candidates: z.strictObject({
    allocation_requests: z.array(
      z.strictObject({
        allocations: z.record(uuid, z.strictObject({ resources: someResources })),
        mappings: z.record(text, z.array(uuid)),
      }),
    ),
    provider_summaries: z.record(
      uuid,
      z.strictObject({
        resources: z.record(z.enum(['VCPU', 'MEMORY_MB', 'DISK_GB']), z.strictObject({ capacity: count, used: count })),
        traits: z.array(text),
        parent_provider_uuid: z.null(),
        root_provider_uuid: uuid,
      }),
    ),
  }),
  oldCandidates: z.strictObject({
    allocation_requests: z.array(
      z.strictObject({ allocations: z.record(uuid, z.strictObject({ resources: someResources })) }),
    ),
    provider_summaries: z.record(
      uuid,
      z.strictObject({
        resources: z.partialRecord(
          z.enum(['VCPU', 'MEMORY_MB', 'DISK_GB']),
          z.strictObject({ capacity: count, used: count }),
        ),
      }),
    ),
  }),
  error: z.strictObject({
    errors: z
      .array(
        z.strictObject({
          status: count,
          title: text,
          detail: text,
          code: text.optional(),
          request_id: z.string().regex(/^req-/),
          max_version: text.optional(),
          min_version: text.optional(),
        }),
      )
      .length(1),
  }),
};

const domain = z.strictObject({ id: text, name: text });
const endpoint = z.strictObject({ id: hex, interface: text, region_id: text, url: text, region: text });
const tokenBase = {
  methods: z.array(text),
  user: z.strictObject({ domain, id: hex, name: text, password_expires_at: z.null() }),
  audit_ids: z.array(text),
  expires_at: z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
  issued_at: z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
};
export const token = z.strictObject({
  token: z.strictObject({
    ...tokenBase,
    project: z.strictObject({ domain, id: hex, name: text }),
    is_domain: z.literal(false),
    roles: z.array(z.strictObject({ id: hex, name: text })),
    catalog: z.array(z.strictObject({ endpoints: z.array(endpoint), id: hex, type: text, name: text })),
    application_credential: z.strictObject({ id: text, name: text, restricted: z.boolean() }).optional(),
  }),
});
export const unscopedToken = z.strictObject({ token: z.strictObject(tokenBase) });
export const keystoneError = z.strictObject({ error: z.strictObject({ code: count, message: text, title: text }) });

const labels = z.record(text, text);
const sample = z.tuple([z.number(), text]);
export const promVector = z.strictObject({
  status: z.literal('success'),
  data: z.strictObject({
    resultType: z.literal('vector'),
    result: z.array(z.strictObject({ metric: labels, value: sample })),
  }),
});
export const promMatrix = z.strictObject({
  status: z.literal('success'),
  data: z.strictObject({
    resultType: z.literal('matrix'),
    result: z.array(z.strictObject({ metric: labels, values: z.array(sample) })),
  }),
});
export const promError = z.strictObject({ status: z.literal('error'), errorType: z.literal('bad_data'), error: text });
