import { answerOrders } from '@kronos/cycle';
import { createWork } from './work.ts';

/** Takes orders from the ledger, answers each. */
answerOrders(createWork());
