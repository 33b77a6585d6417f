/** The base of every link that answers carry: the public URL, or where the server turned out to listen. */
export class Links {
  readonly #publicUrl: string | undefined;
  #listening = 'http://127.0.0.1';

  constructor(publicUrl: string | undefined) {
    this.#publicUrl = publicUrl;
  }

  get baseUrl(): string {
    return this.#publicUrl ?? this.#listening;
  }

  /** Called once the port is known. */
  listeningAt(host: string, port: number): void {
    const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host;
    this.#listening = `http://${name}:${port}`;
  }
}
