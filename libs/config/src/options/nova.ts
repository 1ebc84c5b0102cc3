import { type MovableDevice, movableDevices } from '@kronos/contracts';
import { type CellPattern, parseCells, parseDevices } from '../kinds.ts';
import {
  bool,
  choice,
  integer,
  list,
  make,
  NOVA,
  optionalPath,
  optionalText,
  optionalUrl,
  PLANNING,
  SCORER,
  seconds,
  secret,
  secretFile,
  text,
} from '../option.ts';

/** The options of the section `[nova]`. */
export const nova = {
  cloud: optionalText({
    by: NOVA,
    help: 'Name of a cloud in clouds.yaml. It replaces all authentication options below, except region_name.',
  }),
  clouds_file: optionalPath({
    by: NOVA,
    help: 'The clouds.yaml for cloud. Default: ./clouds.yaml, ~/.config/openstack/clouds.yaml, /etc/openstack/clouds.yaml: the first that exists.',
  }),
  auth_type: choice(['password', 'v3applicationcredential', 'v3token'], 'password', {
    by: NOVA,
    help: 'Keystone authentication plugin.',
  }),
  auth_url: optionalUrl({ by: NOVA, help: "Keystone's URL, e.g. https://keystone.example.org:5000/v3." }),
  username: optionalText({ by: NOVA, help: 'User, for auth_type=password.' }),
  user_id: optionalText({ by: NOVA, help: 'User id, instead of username and its domain.' }),
  password: secret({ by: NOVA, help: 'Password, for auth_type=password.' }),
  password_file: secretFile('password', { by: NOVA }),
  user_domain_name: optionalText({ by: NOVA, help: 'Domain of username.' }),
  user_domain_id: optionalText({ by: NOVA, help: 'Domain of username, by id.' }),
  project_name: optionalText({ by: NOVA, help: 'Project to scope to.' }),
  project_id: optionalText({ by: NOVA, help: 'Project to scope to, by id.' }),
  project_domain_name: optionalText({ by: NOVA, help: 'Domain of project_name.' }),
  project_domain_id: optionalText({ by: NOVA, help: 'Domain of project_name, by id.' }),
  application_credential_id: optionalText({ by: NOVA, help: 'For auth_type=v3applicationcredential.' }),
  application_credential_name: optionalText({
    by: NOVA,
    help: 'For auth_type=v3applicationcredential, together with the user, instead of application_credential_id.',
  }),
  application_credential_secret: secret({ by: NOVA, help: 'For auth_type=v3applicationcredential.' }),
  application_credential_secret_file: secretFile('application_credential_secret', { by: NOVA }),
  token: secret({ by: NOVA, help: 'For auth_type=v3token.' }),
  token_file: secretFile('token', { by: NOVA }),
  region_name: optionalText({ by: NOVA, help: 'Region of the endpoints. With cloud: the one of its regions to use.' }),
  valid_interfaces: list(['internal', 'public'], {
    by: NOVA,
    help: 'Endpoint interfaces in order of preference: internal, public, admin.',
  }),
  endpoint_override: optionalUrl({ by: NOVA, help: "Nova's endpoint, instead of the catalogue's." }),
  placement_endpoint_override: optionalUrl({
    by: NOVA,
    help: "Placement's endpoint, instead of the catalogue's.",
  }),
  cafile: optionalPath({ by: NOVA, help: 'CA certificates (PEM) to verify the servers with.' }),
  certfile: optionalPath({ by: NOVA, help: 'Client certificate (PEM).' }),
  keyfile: optionalPath({ by: NOVA, help: 'Key of the client certificate (PEM).' }),
  insecure: bool(false, { by: NOVA, help: 'Do not verify certificates.' }),
  timeout: seconds(60, { min: 0.1, by: NOVA, help: 'Limit of one request.' }),
  connect_retries: integer(3, { min: 0, by: NOVA, help: 'How often a read is repeated after its connection failed.' }),
  connect_retry_delay: seconds(0.5, {
    min: 0,
    by: NOVA,
    help: 'Wait before the first such retry; it doubles each time.',
  }),
  status_code_retries: integer(3, {
    min: 0,
    by: NOVA,
    help: 'How often a read is repeated after the answer 429, 502, 503 or 504. A request that starts or aborts a migration is never repeated.',
  }),
  status_code_retry_delay: seconds(1, {
    min: 0,
    by: NOVA,
    help: 'Wait before the first such retry; it doubles each time.',
  }),
  page_size: integer(1000, {
    min: 1,
    max: 100000,
    by: NOVA,
    help: "Items per page of a list. Nova's own limit (max_limit, 1000 by default) may make pages smaller.",
  }),
  hypervisor_types: list(['QEMU', 'KVM'], {
    by: SCORER,
    help: 'Types of the hypervisors that Kronos uses. It ignores all others, such as bare metal.',
  }),
  cells: make<readonly CellPattern[]>('cells', [], {
    takes: 'a comma list of CELL:HOSTS, * for any characters',
    parse: parseCells,
    by: SCORER,
    help: 'Cell of each host, e.g. cell1:cmp1*, cell2:cmp2*; the first match counts. No live migration leaves a cell. Not needed in a cloud with one cell.',
  }),
  host_topology: text('auto', {
    by: SCORER,
    help: "NUMA cells of the hosts. auto: from the exporter's NUMA metrics (node_exporter --collector.meminfo_numa). Else the path of a YAML file; see docs/real-clouds.md. They are read only where VMs need cells.",
  }),
  cpu_compatibility: choice(['traits', 'ignore'], 'traits', {
    by: PLANNING,
    help: "traits: a host takes a VM only if its CPUs have the HW_CPU_* traits of those of the VM's host. ignore: do not compare CPUs; for a cloud whose guests all see one common CPU model.",
  }),
  sriov_ports: choice(['auto', 'read', 'ignore'], 'auto', {
    by: NOVA,
    help: 'VMs with SR-IOV ports stay where they are: Nova unplugs such a port for the time of a move. auto: read the ports where Neutron shows this user those of all projects. read: a VM whose ports are not known stays, too. ignore: do not ask Neutron. The executor reads the ports of a VM again before each move, where its user may.',
  }),
  movable_devices: make<readonly MovableDevice[]>('list', [], {
    takes: `a comma list of ${movableDevices.join(', ')}`,
    parse: parseDevices,
    by: PLANNING,
    help: 'VMs with these devices may move, because the hosts can live-migrate them: no API shows that. pci-device: aliases with live_migratable = true. vgpu: libvirt 8.6, QEMU 8.1 and Linux 5.18 on all hosts. sriov-port: guests do without the port during a move. vtpm is only needed where the version of Nova is not known: from Nova 33 (compute 2.103) VMs whose flavor has hw:tpm_secret_security=host move, others never.',
  }),
} as const;
