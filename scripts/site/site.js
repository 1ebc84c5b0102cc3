// The search field and the versions of a page of the documentation. The index is read when somebody searches.
/* global searchOptions, MiniSearch */
(() => {
  const { root, version } = document.documentElement.dataset;
  const query = document.getElementById('query');
  const found = document.getElementById('found');

  const versions = document.getElementById('versions');
  versions.replaceChildren(
    ...(globalThis.kronosVersions ?? [version]).map(
      (each) => new Option(each, each, each === version, each === version),
    ),
  );
  versions.addEventListener('change', () => {
    location.href = `${root}/../${versions.value}/index.html`;
  });

  let index;
  /** The index, from a script: a page that was opened as a file may read nothing else. */
  const loaded = () => {
    index ??= new Promise((resolve, reject) => {
      const script = document.createElement('script');
      script.src = `${root}/index.js`;
      script.onload = () => resolve(MiniSearch.loadJSON(globalThis.kronosIndex, searchOptions));
      script.onerror = () => {
        // The next letter tries again.
        index = undefined;
        reject(new Error(`${script.src} cannot be read`));
      };
      document.head.append(script);
    });
    return index;
  };

  const entry = ({ id, page, heading }) => {
    const link = document.createElement('a');
    link.href = `${root}/${id}`;
    const title = document.createElement('strong');
    title.textContent = heading;
    const place = document.createElement('span');
    place.textContent = page === heading ? '' : page;
    link.append(title, ' ', place);
    const item = document.createElement('li');
    item.append(link);
    return item;
  };
  const say = (text) => {
    const item = document.createElement('li');
    item.textContent = text;
    found.replaceChildren(item);
  };

  const search = async () => {
    const asked = query.value.trim();
    found.hidden = asked === '';
    if (asked === '') return;
    const results = (await loaded()).search(asked).slice(0, 20);
    // Somebody went on typing.
    if (query.value.trim() !== asked) return;
    if (results.length === 0) say(`Nothing is found for ${JSON.stringify(asked)}.`);
    else found.replaceChildren(...results.map(entry));
  };
  query.addEventListener('input', () => {
    search().catch((error) => say(`The search does not work: ${error.message}`));
  });
  query.addEventListener('keydown', ({ key }) => {
    const first = found.querySelector('a');
    if (key === 'Enter' && first !== null) location.href = first.href;
    if (key === 'Escape') {
      query.value = '';
      found.hidden = true;
    }
  });
  found.addEventListener('click', () => {
    found.hidden = true;
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target === query || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    query.focus();
  });
})();
