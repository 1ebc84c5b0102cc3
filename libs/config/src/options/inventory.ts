import { choice, optionalPath, SCORER, seconds, secret, secretFile, text } from '../option.ts';

/** The options of the section `[inventory]`. */
export const inventory = {
  mode: choice(['api', 'changes', 'notifications'], 'api', {
    by: SCORER,
    help: "How the scorer reads the servers. api: all servers in every cycle. changes: all servers once, then only changed ones (changes-since), compared with Nova every sync_interval. notifications: all servers once, then those that Nova's versioned notifications name, compared in the same way. The scorer reads the servers of a host in every cycle if its nova-compute sends none.",
  }),
  sync_interval: seconds(300, {
    min: 1,
    by: SCORER,
    help: 'How often the scorer compares the servers of each host with the ids that Nova lists, unless mode=api. It reads a host that differs again.',
  }),
  transport_url: secret({
    by: SCORER,
    help: "RabbitMQ of Nova's notifications, for mode=notifications: transport_url of [oslo_messaging_notifications] (or [DEFAULT]) in nova.conf, rabbit://USER:PASSWORD@HOST:PORT,.../VHOST, with ?ssl=1 for TLS.",
  }),
  transport_url_file: secretFile('transport_url', { by: SCORER }),
  transport_ca: optionalPath({ by: SCORER, help: 'CA certificates (PEM) to verify RabbitMQ with.' }),
  transport_cert: optionalPath({ by: SCORER, help: 'Client certificate (PEM) for RabbitMQ.' }),
  transport_key: optionalPath({ by: SCORER, help: 'Key of the client certificate (PEM) for RabbitMQ.' }),
  notification_exchange: text('nova', {
    by: SCORER,
    help: "Exchange of Nova's notifications: control_exchange in nova.conf. Kronos never declares it.",
  }),
  notification_topic: text('versioned_notifications', {
    by: SCORER,
    help: 'Topic of the versioned notifications: versioned_notifications_topics of [notifications] in nova.conf.',
  }),
  queue: text('kronos', {
    by: SCORER,
    help: 'Queue that Kronos declares and binds to the exchange. All scorers of an installation share it. No other program may consume from it.',
  }),
  queue_type: choice(['quorum', 'classic'], 'quorum', {
    by: SCORER,
    help: 'Type of the queue. A queue that exists with another type must be deleted first.',
  }),
} as const;
