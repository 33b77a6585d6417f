-- The fragments of the addresses that lead to the headings of a web page, so that a passage links to its place.

-- Pairs of heading and fragment in the order of the text, from which chunks are cut again.
alter table knowledge_texts add column fragments jsonb;
alter table knowledge_chunks add column fragment text;
