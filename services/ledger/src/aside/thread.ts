import { answerOrders } from '@kronos/cycle';
import { createHand } from './hand.ts';

/** Takes orders from the ledger, answers each. */
answerOrders(createHand());
