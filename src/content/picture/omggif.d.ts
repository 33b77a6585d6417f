declare module 'omggif' {
  /** Reads GIF files. Throws plain errors for damaged files. */
  export class GifReader {
    constructor(bytes: Uint8Array);
    readonly width: number;
    readonly height: number;
    /** Draws one frame on `pixels`, which hold the whole picture. */
    decodeAndBlitFrameRGBA(frame: number, pixels: Uint8Array): void;
  }
}
