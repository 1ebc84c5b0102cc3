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

const serverBase = {
  id: uuid,
  name: text,
  status: text,
  tenant_id: hex,
  user_id: hex,
  metadata: z.record(text, text),
  hostId: z.string().regex(/^[0-9a-f]{56}$/),
  created: seconds,
  updated: seconds,
  addresses: z.strictObject({}),
  accessIPv4: text,
  accessIPv6: text,
  links: z.array(link).length(2),
  'OS-DCF:diskConfig': text,
  progress: count,
  'OS-EXT-AZ:availability_zone': text,
  config_drive: text,
  key_name: z.null(),
  'OS-SRV-USG:launched_at': micros,
  'OS-SRV-USG:terminated_at': z.null(),
  'OS-EXT-SRV-ATTR:host': text,
  'OS-EXT-SRV-ATTR:instance_name': z.string().regex(/^instance-[0-9a-f]{8}$/),
  'OS-EXT-SRV-ATTR:hypervisor_hostname': text,
  'OS-EXT-STS:task_state': text.nullable(),
  'OS-EXT-STS:vm_state': text,
  'OS-EXT-STS:power_state': count,
  'os-extended-volumes:volumes_attached': z.array(z.unknown()).length(0),
};
const image = { id: uuid, links: z.array(link).length(1) };
const flavor = {
  vcpus: count,
  ram: count,
  disk: count,
  ephemeral: count,
  swap: count,
  original_name: text,
  extra_specs: z.record(text, text),
};
const since3 = {
  'OS-EXT-SRV-ATTR:reservation_id': text,
  'OS-EXT-SRV-ATTR:launch_index': count,
  'OS-EXT-SRV-ATTR:hostname': text,
  'OS-EXT-SRV-ATTR:kernel_id': text,
  'OS-EXT-SRV-ATTR:ramdisk_id': text,
  'OS-EXT-SRV-ATTR:root_device_name': text,
  'OS-EXT-SRV-ATTR:user_data': z.null(),
};
const since73 = {
  ...since3,
  locked: z.boolean(),
  host_status: text,
  description: text.nullable(),
  tags: z.array(text),
  trusted_image_certificates: z.null(),
  locked_reason: text.nullable(),
};

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
  '2.96': z.strictObject({
    ...serverBase,
    ...since73,
    image: z.strictObject(image),
    flavor: z.strictObject(flavor),
    pinned_availability_zone: text.nullable(),
  }),
  '2.100': z.strictObject({
    ...serverBase,
    ...since73,
    image: z.strictObject({ ...image, properties: z.record(text, z.unknown()) }),
    flavor: z.strictObject(flavor),
    pinned_availability_zone: text.nullable(),
    scheduler_hints: z.record(text, z.unknown()),
  }),
};
/** `GET /servers/{id}` at 2.96. */
export const shownServer = z.strictObject({
  ...serverBase,
  ...since73,
  image: z.strictObject(image),
  flavor: z.strictObject(flavor),
  pinned_availability_zone: text.nullable(),
  server_groups: z.array(uuid),
});

const migrationBase = {
  id: count,
  source_compute: text,
  dest_compute: text.nullable(),
  source_node: text.nullable(),
  dest_node: text.nullable(),
  dest_host: z.null(),
  old_instance_type_id: count,
  new_instance_type_id: count,
  instance_uuid: uuid,
  status: text,
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
  dest_compute: text,
  dest_host: z.null(),
  dest_node: text,
  disk_processed_bytes: bytes,
  disk_remaining_bytes: bytes,
  disk_total_bytes: bytes,
  id: count,
  memory_processed_bytes: bytes,
  memory_remaining_bytes: bytes,
  memory_total_bytes: bytes,
  server_uuid: uuid,
  source_compute: text,
  source_node: text,
  status: text,
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
  request_id: z.string().regex(/^req-/),
  user_id: hex,
  project_id: hex,
  start_time: micros,
  message: text.nullable(),
};
const eventBase = {
  event: text,
  start_time: micros,
  finish_time: micros.nullable(),
  result: text.nullable(),
  traceback: text.nullable(),
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
  hypervisor_hostname: text,
  state: z.enum(['up', 'down']),
  status: z.enum(['enabled', 'disabled']),
  hypervisor_type: text,
  hypervisor_version: count,
  host_ip: text,
};
const sizes = {
  vcpus: count,
  memory_mb: count,
  local_gb: count,
  vcpus_used: count,
  memory_mb_used: count,
  local_gb_used: count,
  free_ram_mb: count,
  free_disk_gb: count,
  current_workload: count,
  running_vms: count,
  disk_available_least: count,
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
  binary: text,
  host: text,
  zone: text,
  status: z.enum(['enabled', 'disabled']),
  state: z.enum(['up', 'down']),
  updated_at: micros,
  disabled_reason: text.nullable(),
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
  hosts: z.array(text),
  metadata: z.record(text, text),
  created_at: micros,
  updated_at: micros.nullable(),
  deleted_at: z.null(),
  deleted: z.literal(false),
  availability_zone: text.nullable(),
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
  total: count,
  reserved: count,
  min_unit: count,
  max_unit: count,
  step_size: count,
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
export const keystoneError = z.strictObject({
  error: z.strictObject({ code: count, message: text, title: text }),
});

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
