import { Link } from 'wouter';
import { PageHead } from '../../ui/page.tsx';
import { SearchPlayground } from './search-playground.tsx';

/** One search over every source that the caller may see. */
export function SearchPage() {
  return (
    <>
      <PageHead
        title="Search everything"
        lead={
          <>
            In all documents that you can see. To search one source, open it in <Link href="/knowledge">Knowledge</Link>
            .
          </>
        }
      >
        <Link href="/answers" className="button plain">
          Ask a question
        </Link>
      </PageHead>
      <SearchPlayground />
    </>
  );
}
