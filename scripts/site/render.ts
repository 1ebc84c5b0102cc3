/** A Markdown file as a page of the site, and as the sections that its search finds. Pure. */
import { Marked, type Tokens } from 'marked';
import { escaped } from '../../libs/replay/src/markup.ts';
import { anchorOf, linkOnSite, pathOnSite } from './pages.ts';

/** Part of a page below one heading. `text`: its words, without marks. */
type Section = {
  readonly id: string;
  readonly page: string;
  readonly heading: string;
  readonly text: string;
};

export type Page = {
  /** Path in the project. */
  readonly source: string;
  readonly title: string;
  readonly html: string;
  readonly sections: readonly Section[];
  /** Paths in the project that it links to. */
  readonly links: readonly string[];
};

/** The words of rendered text. */
const words = (html: string): string =>
  html
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(
      /&(amp|lt|gt|quot|#39);/g,
      (_, name: string) => ({ amp: '&', lt: '<', gt: '>', quot: '"' })[name] ?? "'",
    )
    .replaceAll(/\s+/g, ' ')
    .trim();

export function renderPage(source: string, markdown: string): Page {
  const taken = new Map<string, number>();
  const links = new Set<string>();
  const leads = (link: string) => escaped(linkOnSite(source, link, (path) => links.add(path)));
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }: Tokens.Heading) {
        const id = anchorOf(text.replaceAll(/[`*]|\[([^\]]*)\]\([^)]*\)/g, '$1'), taken);
        return `<h${depth} id="${id}"><a href="#${id}">${this.parser.parseInline(tokens)}</a></h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        return `<a href="${leads(href)}">${this.parser.parseInline(tokens)}</a>`;
      },
      image({ href, text }: Tokens.Image) {
        return `<img src="${leads(href)}" alt="${escaped(text)}">`;
      },
      // Text in angle brackets is no HTML in any page: it is a placeholder.
      html({ text }: Tokens.HTML | Tokens.Tag) {
        return text.startsWith('<!--') ? '' : escaped(text);
      },
    },
  });
  // Blocks wider than the screen scroll, so the keyboard must be able to focus them.
  const html = marked
    .parse(markdown, { async: false })
    .replaceAll('<pre>', '<pre tabindex="0">')
    .replaceAll('<table>', '<div class="wide" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>');
  const title = words(/<h1[^>]*>(.*?)<\/h1>/s.exec(html)?.[1] ?? source);
  return { source, title, html, sections: sectionsOf(pathOnSite(source), title, html), links: [...links] };
}

function sectionsOf(path: string, title: string, html: string): Section[] {
  const parts = html.split(/(?=<h[123] id=")/);
  return parts.flatMap((part) => {
    const [, anchor, head = ''] = /^<h[123] id="([^"]*)">(.*?)<\/h[123]>/s.exec(part) ?? [];
    if (anchor === undefined) return [];
    const text = words(part.slice(part.indexOf('</h') + 5));
    return [{ id: `${path}#${anchor}`, page: title, heading: words(head), text }];
  });
}
