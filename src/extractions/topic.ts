/** The kind of resource in streams of extractions. */
export const extractionTopic = 'extraction';
