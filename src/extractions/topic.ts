/** The kind of resource in extraction streams. */
export const extractionTopic = 'extraction';
