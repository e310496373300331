# The image of a release: the binaries that goreleaser has built (.goreleaser.yaml), for each architecture. It is the target
# "node" of deploy/Dockerfile without a build. It has not been built yet.
FROM busybox:1.37 AS dirs
RUN mkdir -p /empty

FROM gcr.io/distroless/static-debian12:nonroot
ARG TARGETPLATFORM
COPY ${TARGETPLATFORM}/troupe ${TARGETPLATFORM}/troupe-node /usr/bin/
COPY LICENSE NOTICE THIRD_PARTY_LICENSES /usr/share/doc/troupe/
COPY --from=dirs --chown=65532:65532 /empty /var/lib/troupe
USER 65532:65532
VOLUME /var/lib/troupe
ENTRYPOINT ["/usr/bin/troupe-node"]
CMD ["--store-dir", "/var/lib/troupe/state"]
