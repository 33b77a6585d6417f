import { useAddOn } from '../lib/add-ons.ts';

/*
 * The packages of the add-on "s3". `openS3` (open.ts) looks for the add-on before it loads the modules that import this.
 */
const load = useAddOn('s3');

export const sdk = load('@aws-sdk/client-s3') as typeof import('@aws-sdk/client-s3');
export const storage = load('@aws-sdk/lib-storage') as typeof import('@aws-sdk/lib-storage');
export const presigner = load('@aws-sdk/s3-request-presigner') as typeof import('@aws-sdk/s3-request-presigner');
