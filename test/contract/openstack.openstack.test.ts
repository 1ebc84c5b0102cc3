import { openBed } from './bed.ts';
import { cloudContract, services } from './index.ts';

cloudContract('the test cloud', openBed, services);
