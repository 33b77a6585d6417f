/**
 * Files in which generators of documentation keep the menu of all pages once, beside the pages: Doxygen's `menudata.js`
 * and `doxygen_crawl.html`, ExDoc's `dist/sidebar_items-….js`, and `toc.html` of mdBook and DocFX. Browsers load them by scripts and in frames.
 */
const script = /\/(?:menudata|dist\/sidebar_items[^/]*)\.js$/;
const page = /\/(?:toc|doxygen_crawl)\.(?:x?html?|php)$/;

export function isMenuScript(path: string): boolean {
  return script.test(path);
}

/** Whether a page may be one of them. People write pages of this name, too: it is one if it consists of links. */
export function mayBeMenuPage(path: string): boolean {
  return page.test(path);
}
