-- What the pages of a site repeat beside their text. A crawl leaves out a box that stands in the same place on half of
-- its pages, so it reads its first pages before it hands any of them over.

alter table crawl_pages
  -- The keys of the boxes of the page's text, eight bytes each.
  add column boxes bytea,
  -- The page as it was read, as JSON, until it is handed over. Its state is still `queued`: an older release reads the
  -- page again.
  add column held text;

alter table crawled_pages add column boxes bytea;
