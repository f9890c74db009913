# One image with all programs; a pod chooses with command: [watcher], [actuator] or [projector]. Without a command it runs the reloader. To build without a container engine, for
# several platforms and with an SBOM, use `make image`.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
# Includes .git, from which the binaries get their commit.
COPY . .
ARG VERSION=devel
RUN make build VERSION=${VERSION}

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /src/bin/actuator /src/bin/projector /src/bin/reloader /src/bin/watcher /usr/local/bin/
USER 65532:65532
# Reloader's chart gives its image arguments and no command.
ENTRYPOINT ["reloader"]
