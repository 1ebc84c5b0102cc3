import { answerOrders } from '@kronos/cycle';
import { packed } from './sentError.ts';
import { createWorker } from './worker.ts';

/** A thread of the pool: it takes orders and answers each. */
answerOrders(createWorker(), packed);
