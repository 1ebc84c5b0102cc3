/** The bounds of a list that is read page by page: a service, or a proxy before it, may answer with pages without end. Pure. */
import { BadAnswer } from './errors.ts';

/** More rows than any cloud has, and than memory holds several times. */
export const MAX_ROWS = 500_000;
/** The pages of {@link MAX_ROWS} rows where a service gives 50 rows a page. */
export const MAX_PAGES = 10_000;

/** A list: its service and its route, and how many rows it may have. Default {@link MAX_ROWS}. */
type List = { readonly service: string; readonly url: string; readonly maxRows?: number };

/** Follows how far the reading of one list is. */
export class Pages {
  readonly #list: List;
  readonly #markers = new Set<string>();
  #pages = 0;

  constructor(list: List) {
    this.#list = list;
  }

  /**
   * Notes a page that another one follows.
   *
   * @param rows of all pages so far
   * @param marker of the page to come
   * @throws BadAnswer when the list leads back to a page that was read, or does not end
   */
  follow(rows: number, marker: string): void {
    const { service, url, maxRows = MAX_ROWS } = this.#list;
    const place = { service, method: 'GET', url };
    if (this.#markers.has(marker))
      throw new BadAnswer(
        place,
        `the list leads to the page after the marker ${marker} again: a proxy before ${service} may drop the query, or answer from a cache. Give Kronos an endpoint behind the proxy`,
      );
    this.#markers.add(marker);
    this.#pages += 1;
    if (rows > maxRows || this.#pages >= MAX_PAGES)
      throw new BadAnswer(
        place,
        `the list does not end after ${this.#pages} pages with ${rows} rows, more than any cloud has; the last marker is ${marker}. Look at what ${service} answers with this marker: it, or a proxy before it, makes rows that do not exist. Give Kronos an endpoint behind the proxy, or mend the service`,
      );
  }
}
