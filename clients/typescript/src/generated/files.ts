// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const files = (c: Connection) => ({
  /** Upload a file. */
  create: (body: S.CreateFileRequest, options?: CallOptions): Promise<S.StoredFile> => c.postOnce('/api/v1/files', body, options),
  /** List files. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Adds `picture_url` to pictures and PDFs. The small picture is at most this many pixels wide. */
width?: 64 | 128 | 256 | 512 | 1024 | 2048 | undefined; /** Format of `picture_url`. Default `webp`. */
format?: 'webp' | 'jpeg' | 'png' | undefined; /** Only files of this agent (agt_…). */
agent?: string | undefined; /** Only files of this organisation (org_…). */
org?: string | undefined; /** Only files of this team (tem_…). */
team?: string | undefined; /** Only files of this user (usr_…). */
user?: string | undefined; /** A MIME type, or a family such as `image/*`. */
content_type?: string | undefined; /** Only names with this prefix, such as `reports/`. */
prefix?: string | undefined; /** Only files that this run (atr_…) made: with its nodes, by uploads that named it, and by the extractions that it started. A key needs `automations:read`, too. */
automation_run?: string | undefined; /** The order; with `-`, the largest or newest first. Default `-created_at`. */
sort?: 'created_at' | '-created_at' | 'filename' | '-filename' | 'size' | '-size' | undefined; /** Part of the filename, case-insensitive. */
search?: string | undefined; }, options?: CallOptions): Pages<S.StoredFile, S.StoredFilePage> => c.list('/api/v1/files', query, options),
  /** Get a file with a fresh download URL. */
  get: (file: string, query?: { /** Adds `picture_url` to pictures and PDFs. The small picture is at most this many pixels wide. */
width?: 64 | 128 | 256 | 512 | 1024 | 2048 | undefined; /** Format of `picture_url`. Default `webp`. */
format?: 'webp' | 'jpeg' | 'png' | undefined; /** The page of a PDF that `picture_url` shows, from 1. Default 1. */
page?: number | undefined; }, options?: CallOptions): Promise<S.StoredFile> => c.get(path`/api/v1/files/${file}`, query, options),
  /** Update a file’s name, metadata, sharing or access list. */
  update: (file: string, body?: S.UpdateFileRequest, options?: CallOptions): Promise<S.StoredFile> => c.send('PATCH', path`/api/v1/files/${file}`, body, options),
  /** Delete a file and its contents. */
  delete: (file: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/files/${file}`, undefined, options),
  /** Create a URL for uploading one file without a credential. */
  createUploadUrl: (body: S.CreateFileUploadUrlRequest, options?: CallOptions): Promise<S.UploadLink> => c.send('POST', '/api/v1/files/upload_urls', body, options),
  /** List unfinished uploads. */
  listUploads: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.Upload, S.UploadPage> => c.list('/api/v1/uploads', query, options),
  /** Read how much of an upload is stored. */
  getUpload: (upload: string, options?: CallOptions): Promise<S.Upload> => c.get(path`/api/v1/uploads/${upload}`, undefined, options),
  /** Delete an upload and its bytes. */
  deleteUpload: (upload: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/uploads/${upload}`, undefined, options),
});
