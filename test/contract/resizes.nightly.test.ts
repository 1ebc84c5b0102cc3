import { openBed } from './bed.ts';
import { cloudContract, resizes } from './index.ts';

cloudContract('the test cloud', openBed, resizes);
