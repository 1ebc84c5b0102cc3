export { checkClock, logClock } from './clockCheck.ts';
export { awaitTrustedLog, type FoldedLog, foldVerified, holdThroughReplacement } from './guarded.ts';
export { reportService } from './heartbeat.ts';
export { joinLog } from './joined.ts';
export { connectLog, consoleConfig, healthCheck } from './nats.ts';
export { openNotifications } from './notifications.ts';
export { type Cloud, openCloud, openIdentity } from './openstack.ts';
export { type Outside, realOutside } from './outside.ts';
export { openPrometheus } from './prometheus.ts';
