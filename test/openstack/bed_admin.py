"""What the bed does through its own APIs, as admin. Runs inside the bed's root.

  bed_admin.py catalog              users, services and endpoints (once, when the databases are made)
  bed_admin.py things               flavors and an image (likewise)
  bed_admin.py services COUNT       until so many nova-computes report
  bed_admin.py wait COUNT           until so many hosts can be scheduled to
  bed_admin.py reports HOST [TIME]  when its nova-compute reported last; until it reported after that time
  bed_admin.py status | reset | api ... | servers ... | aggregate ... | group ... | host ...    see `bed`
"""
import json
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import requests

with open('/lab/shift') as file:
    SHIFT = int(file.read())
KEYSTONE = f'http://127.0.0.1:{15000 + SHIFT}/v3'
NOVA = f'http://127.0.0.1:{18774 + SHIFT}/v2.1'
PLACEMENT = f'http://127.0.0.1:{18778 + SHIFT}'
GLANCE = f'http://127.0.0.1:{19292 + SHIFT}'
TOKEN = '/lab/token'
FINAL = ('completed', 'failed', 'error', 'cancelled')


def die(text):
    print(f'bed: {text}', file=sys.stderr)
    sys.exit(1)


def fresh_token():
    body = {'auth': {
        'identity': {'methods': ['password'], 'password': {'user': {
            'name': 'admin', 'domain': {'id': 'default'}, 'password': 'secret'}}},
        'scope': {'project': {'name': 'admin', 'domain': {'id': 'default'}}}}}
    answer = requests.post(f'{KEYSTONE}/auth/tokens', json=body, timeout=60)
    answer.raise_for_status()
    return answer.headers['X-Subject-Token']


def token():
    try:
        if time.time() - os.stat(TOKEN).st_mtime < 45 * 60:
            with open(TOKEN) as f:
                return f.read()
    except OSError:
        pass
    made = fresh_token()
    with open(TOKEN + '.new', 'w') as f:
        f.write(made)
    os.rename(TOKEN + '.new', TOKEN)
    return made


def call(method, path, body=None, base=NOVA, service='compute 2.96', ok=True, **kw):
    headers = {'X-Auth-Token': token(), 'OpenStack-API-Version': service}
    answer = requests.request(method, base + path, json=body, headers=headers, timeout=120, **kw)
    if ok and answer.status_code >= 400:
        die(f'{method} {path}: {answer.status_code} {answer.text[:500]}')
    return answer


def get(path, **kw):
    return call('GET', path, **kw).json()


def until(what, test, seconds=120, every=0.5):
    end = time.time() + seconds
    while time.time() < end:
        found = test()
        if found:
            return found
        time.sleep(every)
    die(f'waited {seconds} seconds in vain: {what}')


def everywhere(function, items):
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(function, items))


def catalog():
    def post(path, body):
        return call('POST', path, body, base=KEYSTONE).json()
    roles = get('/roles', base=KEYSTONE)['roles']
    role = [r['id'] for r in roles if r['name'] in ('admin', 'service')]
    project = post('/projects', {'project': {'name': 'service', 'domain_id': 'default'}})['project']['id']
    for name in ('nova', 'placement', 'glance'):
        user = post('/users', {'user': {'name': name, 'password': 'secret', 'domain_id': 'default'}})['user']['id']
        for r in role:
            call('PUT', f'/projects/{project}/users/{user}/roles/{r}', base=KEYSTONE)
    for name, kind, url in (('nova', 'compute', NOVA), ('placement', 'placement', PLACEMENT),
                            ('glance', 'image', GLANCE), ('neutron', 'network', f'http://127.0.0.1:{19696 + SHIFT}')):
        service = post('/services', {'service': {'name': name, 'type': kind}})['service']['id']
        for face in ('public', 'internal', 'admin'):
            post('/endpoints', {'endpoint': {'service_id': service, 'interface': face,
                                             'region_id': 'RegionOne', 'url': url}})


def things():
    for number, name, vcpus, ram in ((1, 'bed.small', 2, 4096), (2, 'bed.large', 8, 16384)):
        call('POST', '/flavors', {'flavor': {'id': str(number), 'name': name, 'ram': ram, 'vcpus': vcpus, 'disk': 1}})
    image = call('POST', '/v2/images', {'name': 'bed', 'disk_format': 'raw', 'container_format': 'bare',
                                        'visibility': 'public'}, base=GLANCE).json()['id']
    headers = {'X-Auth-Token': token(), 'Content-Type': 'application/octet-stream'}
    requests.put(f'{GLANCE}/v2/images/{image}/file', data=b'\0' * 1024, headers=headers, timeout=60).raise_for_status()
    with open('/lab/image.id', 'w') as f:
        f.write(image + '\n')


def services(count):
    def ready():
        found = call('GET', '/os-services?binary=nova-compute', ok=False)
        return found.status_code == 200 and sum(s['state'] == 'up' for s in found.json()['services']) >= int(count)
    until(f'{count} computes; see lab/log/cmp*.log in the root', ready, 180, 1)


def wait(count):
    def ready():
        # Only hosts that are mapped to a cell are listed here.
        listed = call('GET', '/os-hypervisors', ok=False)
        if listed.status_code != 200 or len(listed.json()['hypervisors']) < int(count):
            return False
        found = get('/allocation_candidates?resources=VCPU:1', base=PLACEMENT, service='placement 1.36')
        return len(found['provider_summaries']) >= int(count)
    until(f'{count} hosts that can be scheduled to; see lab/log/nova.log in the root', ready, 60)


def status():
    servers = get('/servers/detail?all_tenants=1')['servers']
    for service in sorted(get('/os-services?binary=nova-compute')['services'], key=lambda s: s['host']):
        count = sum(s['OS-EXT-SRV-ATTR:host'] == service['host'] for s in servers)
        print(f"{service['host']}: {service['state']}, {service['status']}, {count} servers")


def reset():
    for service in get('/os-services?binary=nova-compute')['services']:
        if service['forced_down']:
            call('PUT', f"/os-services/{service['id']}", {'forced_down': False})
        if service['status'] != 'enabled':
            call('PUT', f"/os-services/{service['id']}", {'status': 'enabled'})

    def delete(server):
        call('DELETE', f"/servers/{server['id']}", ok=False)

    def empty():
        left = get('/servers/detail?all_tenants=1')['servers']
        for server in left:
            if server['status'] == 'ERROR' or server['OS-EXT-STS:task_state'] not in ('deleting', None):
                call('POST', f"/servers/{server['id']}/action", {'os-resetState': {'state': 'error'}}, ok=False)
        everywhere(delete, [s for s in left if s['OS-EXT-STS:task_state'] != 'deleting'])
        return not left
    until('all servers deleted', empty, 180)
    # What a server held that was deleted while it moved stays taken: Nova forgets it.
    for provider in get('/resource_providers', base=PLACEMENT, service='placement 1.36')['resource_providers']:
        held = get(f"/resource_providers/{provider['uuid']}/allocations", base=PLACEMENT, service='placement 1.36')
        for consumer in held['allocations']:
            call('DELETE', f'/allocations/{consumer}', base=PLACEMENT, service='placement 1.36', ok=False)
    for group in get('/os-server-groups?all_projects=True')['server_groups']:
        call('DELETE', f"/os-server-groups/{group['id']}")
    for aggregate in get('/os-aggregates')['aggregates']:
        for host in aggregate['hosts']:
            call('POST', f"/os-aggregates/{aggregate['id']}/action", {'remove_host': {'host': host}})
        call('DELETE', f"/os-aggregates/{aggregate['id']}")
    until('all hosts up', lambda: all(s['state'] == 'up' for s in get('/os-services?binary=nova-compute')['services']))


def servers(count, host, cpu=None, mem=None, group=None):
    with open('/lab/image.id') as f:
        image = f.read().strip()
    metadata = {} if cpu is None else {'cpu': cpu, 'mem': mem or '2048'}

    def boot(_):
        body = {'server': {'name': f'vm-{host}-{random.randrange(10 ** 6)}', 'flavorRef': '1', 'imageRef': image,
                           'networks': 'none', 'host': host, 'metadata': metadata}}
        if group:
            body['os:scheduler_hints'] = {'group': group}
        return call('POST', '/servers', body).json()['server']['id']
    made = everywhere(boot, range(int(count)))

    def active():
        states = {s['id']: s['status'] for s in get('/servers/detail?all_tenants=1')['servers']}
        broken = [i for i in made if states.get(i) == 'ERROR']
        if broken:
            why = get(f'/servers/{broken[0]}')['server'].get('fault', {}).get('message')
            die(f'{len(broken)} of {count} servers did not boot on {host}: {why}')
        return all(states.get(i) == 'ACTIVE' for i in made)
    until(f'{count} servers on {host}', active, 300)
    print('\n'.join(made))


def aggregate(name, *hosts):
    made = call('POST', '/os-aggregates', {'aggregate': {'name': name}}).json()['aggregate']['id']
    for each in hosts:
        call('POST', f'/os-aggregates/{made}/action', {'add_host': {'host': each}})
    print(made)


def group(name, policy, most=None):
    rules = {} if most is None else {'rules': {'max_server_per_host': int(most)}}
    print(call('POST', '/os-server-groups', {'server_group': {'name': name, 'policy': policy, **rules}}).json()['server_group']['id'])


def host(name, what):
    found = [s for s in get('/os-services?binary=nova-compute')['services'] if s['host'] == name]
    if not found:
        die(f'there is no host {name}')
    call('PUT', f"/os-services/{found[0]['id']}", {'status': what + 'd'})


def reports(name, *before):
    """When the nova-compute of a host reported last; with a time: waits until it reported after it, and is up."""
    def find():
        return next(s for s in get('/os-services?binary=nova-compute')['services'] if s['host'] == name)
    if before:
        until(f'{name} up', lambda: find()['state'] == 'up' and find()['updated_at'] > before[0])
    else:
        print(find()['updated_at'])


def api(method, path, body=None):
    answer = call(method, path, None if body is None else json.loads(body), ok=False)
    print(answer.text)


COMMANDS = {f.__name__: f for f in (catalog, things, services, wait, status, reset, servers, aggregate, group, host, reports, api)}

if __name__ == '__main__':
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        die(__doc__)
    try:
        COMMANDS[sys.argv[1]](*sys.argv[2:])
    except TypeError as error:
        die(f'{sys.argv[1]}: {error}')
    except requests.ConnectionError as error:
        die(f'an API does not answer: {error}')
