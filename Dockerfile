# For those who build with a container engine. `make image` needs none, and makes an image for several platforms with an SBOM.
# One image with both programs; a pod says which: command: [watcher] or command: [actuator].
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
# With .git, from which the binaries know their commit.
COPY . .
ARG VERSION=devel
RUN make build VERSION=${VERSION}

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /src/bin/ /usr/local/bin/
USER 65532:65532
