import { openBed } from './bed.ts';
import { cloudContract } from './index.ts';

cloudContract('the test cloud', openBed);
