"""Prints which of Nova's rules let somebody pass who has the role kronos_reader and nothing else, as JSON.

Runs where Nova is installed: rights.py NOVA_CONF. The rules that pass for a thing of another project and not for
somebody without any role, and whether the context that Nova makes for an API call is an administrator's.
"""
import json
import sys

from oslo_config import cfg

cfg.CONF(["--config-file", sys.argv[1]], project="nova")
from nova import context, policies, policy  # noqa: E402  (the options first)

policy.init(suppress_deprecation_warnings=True)
reader = context.RequestContext(user_id="reader", project_id="kronos", roles=["kronos_reader"])
nobody = context.RequestContext(user_id="nobody", project_id="kronos", roles=[])
other = {"project_id": "other", "user_id": "somebody"}


def passes(who):
    return {r.name for r in policies.list_rules() if policy.authorize(who, r.name, other, do_raise=False)}


print(json.dumps({"isAdmin": bool(reader.is_admin), "passed": sorted(passes(reader) - passes(nobody))}))
