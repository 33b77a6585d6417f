declare module 'omggif' {
  /** Reads GIF files. Throws plain errors for damaged ones. */
  export class GifReader {
    constructor(bytes: Uint8Array);
    readonly width: number;
    readonly height: number;
    /** Draws one frame on `pixels`, which are of the whole picture. */
    decodeAndBlitFrameRGBA(frame: number, pixels: Uint8Array): void;
  }
}
