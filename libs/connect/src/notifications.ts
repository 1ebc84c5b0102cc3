import { type Config, learnSecret, parseTransportUrl } from '@kronos/config';
import { type ConnectBroker, type ConsumeOptions, type Consuming, consume } from '@kronos/notifications';

/** Takes Nova's notifications from the RabbitMQ of the `[inventory]` section. `open`: how a broker is reached; default: over the network. @throws Error when `transport_url` cannot be read */
export function openNotifications(
  { inventory }: Pick<Config, 'inventory'>,
  hooks: Pick<ConsumeOptions, 'name' | 'clock' | 'ready' | 'store' | 'onState'>,
  open?: ConnectBroker,
): Consuming {
  const parsed = parseTransportUrl(inventory.transportUrl?.reveal() ?? '');
  if (!parsed.ok) throw new Error(`[inventory] transport_url ${parsed.problem}`);
  for (const { password } of parsed.transport.brokers) learnSecret(password);
  const options = {
    ...hooks,
    transport: parsed.transport,
    tls: { caFile: inventory.transportCa, certFile: inventory.transportCert, keyFile: inventory.transportKey },
    exchange: inventory.notificationExchange,
    topic: inventory.notificationTopic,
    queue: inventory.queue,
    queueType: inventory.queueType,
  };
  return consume(options, open);
}
