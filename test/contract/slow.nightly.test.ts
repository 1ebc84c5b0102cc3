import { openBed } from './bed.ts';
import { cloudContract, slow } from './index.ts';

cloudContract('the test cloud', openBed, slow);
