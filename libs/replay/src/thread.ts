import { answerOrders } from '@kronos/cycle';
import { packed } from './failure.ts';
import { createHand } from './hand.ts';

/** A thread of the crew: takes orders, answers each. */
answerOrders(createHand(), packed);
