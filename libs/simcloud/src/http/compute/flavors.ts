import type { Cloud } from '../../cloud.ts';
import { novaReply, type Route, route } from './nova.ts';

/** flavors. */
export function flavorRoutes(cloud: Cloud): readonly Route[] {
  return [
    route('GET /flavors/detail', 'flavors', (scope) =>
      novaReply(scope, 200, {
        flavors: [...cloud.flavors.values()].map((each) => ({
          id: each.id,
          name: each.name,
          vcpus: each.vcpus,
          ram: each.memoryMb,
          disk: each.diskGb,
          'OS-FLV-EXT-DATA:ephemeral': 0,
          swap: scope.minor >= 75 ? 0 : '',
          'os-flavor-access:is_public': true,
          ...(scope.minor >= 61 ? { extra_specs: each.extraSpecs } : {}),
          links: [{ rel: 'bookmark', href: `${scope.call.base}/flavors/${each.id}` }],
        })),
      }),
    ),
  ];
}
