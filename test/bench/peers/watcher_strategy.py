"""Runs a strategy of OpenStack Watcher on a cluster file; prints JSON.

usage: PYTHONPATH=ROOT/usr/lib/python3/dist-packages python3 watcher_strategy.py CLUSTER.json stabilization|consolidation

The strategies are Watcher's own (9.0.0, of Debian's python3-watcher); only the cluster model and the metrics come from the
file, from memory: the time of Watcher's query per VM would come on top.
"""
import json
import logging
import sys
import time
from unittest import mock

logging.disable(logging.CRITICAL)

from watcher.common import utils
from watcher.decision_engine.model import element, model_root
from watcher.decision_engine.strategy import strategies

CORES, MEMORY_MB, RESERVED_MB = 64, 524288, 8192
with open(sys.argv[1]) as file:
    cluster = json.load(file)
kind = sys.argv[2]

model = model_root.ModelRoot()
nodes, vms = {}, {}
load = {host['id']: [0.0, 0.0] for host in cluster['hosts']}
for vm in cluster['vms']:
    for p in (0, 1):
        load[vm['host']][p] += vm['w'][p]
for host in cluster['hosts']:
    node = element.ComputeNode(
        uuid=host['id'], id=len(nodes) + 1, hostname=host['id'], status='enabled', state='up',
        memory=MEMORY_MB, memory_mb_reserved=RESERVED_MB, memory_ratio=1.0,
        disk=10_000_000, disk_gb_reserved=0, disk_ratio=1.0, vcpus=CORES, vcpu_reserved=0, vcpu_ratio=4.0)
    model.add_node(node)
    nodes[host['id']] = node
for vm in cluster['vms']:
    instance = element.Instance(
        uuid=vm['id'], name=vm['id'], state='active', vcpus=vm['vcpus'], memory=vm['memMb'], disk=1,
        watcher_exclude=False, metadata={}, project_id='p', locked=False)
    model.add_instance(instance)
    model.map_instance(instance, nodes[vm['host']])
    vms[vm['id']] = vm


class Metrics:
    """The data source: what the cluster file says."""
    NAME = 'file'

    def statistic_aggregation(self, resource=None, resource_type=None, meter_name=None, *_, **__):
        return {
            'instance_cpu_usage': self.get_instance_cpu_usage,
            'instance_ram_usage': self.get_instance_ram_usage,
            'host_cpu_usage': self.get_host_cpu_usage,
            'host_ram_usage': self.get_host_ram_usage,
        }[meter_name](resource)

    def get_instance_cpu_usage(self, resource, *_, **__):
        vm = vms[resource.uuid]
        return vm['w'][0] * CORES / vm['vcpus'] * 100

    def get_instance_ram_usage(self, resource, *_, **__):
        return vms[resource.uuid]['w'][1] * MEMORY_MB

    def get_instance_ram_allocated(self, resource, *_, **__):
        return vms[resource.uuid]['memMb']

    def get_instance_root_disk_size(self, resource, *_, **__):
        return 1

    def get_host_cpu_usage(self, resource, *_, **__):
        return load[resource.uuid][0] * 100

    def get_host_ram_usage(self, resource, *_, **__):
        return load[resource.uuid][1] * MEMORY_MB * 1024


strategy_class = {
    'stabilization': strategies.WorkloadStabilization,
    'consolidation': strategies.VMWorkloadConsolidation,
}[kind]
for attribute, value in (('compute_model', model), ('datasource_backend', Metrics())):
    mock.patch.object(strategy_class, attribute, new_callable=mock.PropertyMock, return_value=value).start()
strategy = strategy_class(config=mock.Mock(datasources=['file']))
strategy.input_parameters = utils.Struct()
if kind == 'stabilization':
    names = ['instance_cpu_usage', 'instance_ram_usage']
    parameters = {
        'metrics': names,
        'thresholds': {name: 0.0001 for name in names},
        'weights': {name + '_weight': 1.0 for name in names},
        'instance_metrics': {'instance_cpu_usage': 'host_cpu_usage', 'instance_ram_usage': 'host_ram_usage'},
        'host_choice': 'retry',
        'retry_count': 1,
        'periods': {'instance': 720, 'compute_node': 600, 'node': 0},
        'aggregation_method': {'instance': 'mean', 'compute_node': 'mean', 'node': ''},
        'granularity': 300,
    }
    strategy.input_parameters.update(parameters)
    for name in parameters:
        if name != 'granularity':
            setattr(strategy, name, parameters[name])
else:
    strategy.input_parameters.update({'period': 3600, 'granularity': 300})

started = time.time()
strategy.do_execute()
seconds = time.time() - started
moves = [action for action in strategy.solution.actions if action['action_type'] == 'migrate']
placement = {}
for host in cluster['hosts']:
    for instance in model.get_node_instances(nodes[host['id']]):
        placement[instance.uuid] = host['id']
json.dump({'seconds': seconds, 'moves': len(moves), 'placement': placement}, sys.stdout)
