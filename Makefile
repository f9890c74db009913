# What there is to do here. `make` alone lists it.
MAKEFLAGS += --no-print-directory

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
IMAGE ?= keyturn:$(VERSION)
IMAGE_DIR ?= bin/image
# How long `make fuzz` gives each target.
FUZZTIME ?= 30s
# For example BENCH_FLAGS="-write docs/benchmarks.md".
BENCH_FLAGS ?=
# For example SCALE_FLAGS="-write docs/scale.md".
SCALE_FLAGS ?=
# Runs tests, and those that failed once more, on their own: at most three of them, and none after a data race. Many servers run side by
# side, on machines of any speed: one test that lost a race against the clock does not void all the others. It is named at the end.
RETRIED = bin/retried-$@.txt
GO_TEST = rm -f '$(RETRIED)'; mkdir -p '$(dir $(RETRIED))'; $(GOTESTSUM) --format standard-quiet --hide-summary skipped \
	--rerun-fails=1 --rerun-fails-max-failures=3 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race --rerun-fails-report '$(RETRIED)'
NAME_RETRIED = if [ -s '$(RETRIED)' ]; then \
	printf '\n==> $@: these failed at first, which is a bug of the test or of the code:\n' && cat '$(RETRIED)'; fi
# Tests that compare a file of the repository with what the code says, and write it anew with -update.
GENERATED := TestReference|TestStreamManifests|TestGolden
GENERATED_PACKAGES := ./internal/events ./cmd/watcher ./cmd/actuator ./tests/monitoring

# The tools that `make test` runs are built once per version, of themselves and of Go, into the user's cache.
TOOLS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/keyturn/tools
tool_version = $(shell sed -n 's|^require $1 ||p' tests/tools/$2/go.mod)
LINT_VERSION := $(call tool_version,github.com/golangci/golangci-lint/v2,golangci-lint)
LINT := $(TOOLS)/golangci-lint-$(LINT_VERSION)-$(shell go env GOVERSION)/golangci-lint
GOTESTSUM := $(TOOLS)/gotestsum-$(call tool_version,gotest.tools/gotestsum,gotestsum)-$(shell go env GOVERSION)/gotestsum

say = @printf '\n==> %s %s\n' "$$(date +%T)"

.DEFAULT_GOAL := help
.PHONY: help demo demo-secrets demo-trace test unit e2e bench scale fuzz lint fmt generate generate-check build image clean

#? help: list the targets
help:
	@sed -n 's/^#? \([a-z0-9-]*\): /  make \1\t/p' Makefile | expand -t 26

#? demo: show it at work: a control plane, both programs, changes and what came of them
demo:
	$(say) 'demo: a real control plane on this machine, both programs, and what they do about changes'
	@go run ./tests/demo

#? demo-secrets: show a rotation in a secret store reach the pods: Vault (or BAO_BIN), External Secrets, cert-manager
demo-secrets:
	$(say) 'demo-secrets: a real secret store, External Secrets, cert-manager and both programs on a real control plane'
	@go run ./tests/demo -secrets

#? demo-trace: show the trace of a change in a real Jaeger, and leave that up until Enter is pressed
demo-trace:
	$(say) 'demo-trace: both programs on a real control plane, and the trace of one change in a real Jaeger'
	@go run ./tests/demo -trace

#? test: all that must pass before a change is merged
test: lint generate-check unit e2e
	$(say) 'test: passed'

#? unit: the tests of the packages, with the race detector
unit: $(GOTESTSUM)
	$(say) 'unit: the tests of the packages, with the race detector'
	@$(GO_TEST) --packages './internal/... ./cmd/... ./docs/...' -- -race -vet=off
	@$(NAME_RETRIED)

#? e2e: the tests on a real control plane, whose servers the first run builds (a quarter of an hour)
e2e: $(GOTESTSUM)
	$(say) 'e2e: building the servers of the test bed, unless they are in the cache'
	@go run ./tests/testbed/cmd/build
	$(say) 'e2e: the tests on a real control plane, with the race detector'
	@$(GO_TEST) --packages ./tests/... -- -race -vet=off -timeout 40m -p 2 -parallel 4
	@$(NAME_RETRIED)

$(GOTESTSUM):
	$(say) 'building gotestsum into the cache, once'
	@mkdir -p $(@D)
	@cd tests/tools/gotestsum && CGO_ENABLED=0 go build -trimpath -o $@.$$$$ gotest.tools/gotestsum && mv $@.$$$$ $@

#? bench: measure against the floor (BENCH_FLAGS)
bench:
	$(say) 'bench: the programs against a bare watch and one patch, on a real control plane'
	@go run ./tests/bench $(BENCH_FLAGS)

#? scale: measure a NATS of three servers with the events of 50 and of 200 clusters, some minutes (SCALE_FLAGS)
scale:
	$(say) 'scale: what the watchers of many clusters would say, against a NATS of three servers'
	@go run ./tests/scale $(SCALE_FLAGS)

#? fuzz: fuzz each decoder for FUZZTIME
fuzz:
	@grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' internal | while IFS=: read -r file func; do \
		printf '\n==> %s fuzz: %s in %s for $(FUZZTIME)\n' "$$(date +%T)" "$${func#func }" "$$(dirname "$$file")"; \
		go test "./$$(dirname "$$file")" -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZTIME) || exit 1; done

#? lint: check the code against .golangci.yml
lint: $(LINT)
	$(say) 'lint: checking the code against .golangci.yml'
	@$(LINT) run --allow-parallel-runners

#? fmt: format the code as lint wants it
fmt: $(LINT)
	@$(LINT) fmt

$(LINT):
	$(say) 'lint: building golangci-lint $(LINT_VERSION) into the cache, once: some minutes on two cores'
	@mkdir -p $(@D)
	@cd tests/tools/golangci-lint && CGO_ENABLED=0 go build -trimpath -ldflags='-s -w -X main.version=$(LINT_VERSION)' \
		-o $@.$$$$ github.com/golangci/golangci-lint/v2/cmd/golangci-lint && mv $@.$$$$ $@

#? generate: write the files that are made from code: the references of flags and metrics, the stream manifests, the golden events
generate:
	@go test $(GENERATED_PACKAGES) -run '$(GENERATED)' -count 1 -update

#? generate-check: check that those files are what the code says
generate-check:
	$(say) 'generate-check: comparing the generated files with the code; `make generate` writes them'
	@go test -race $(GENERATED_PACKAGES) -run '$(GENERATED)'

# Without the tag, gRPC's request traces bring text/template in, and with it every method of every type of the Kubernetes API,
# for it calls methods by name: a third of the binary, and of what of it is in memory.
BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=auto -tags grpcnotrace -ldflags='-s -w -X main.version=$(VERSION)'

#? build: static binaries of both programs in bin/
build:
	$(say) 'build: bin/watcher and bin/actuator, $(VERSION)'
	@$(BUILD) -o bin/ ./cmd/...

#? image: a container image for amd64 and arm64 as an OCI archive (IMAGE, IMAGE_DIR), without a daemon
image:
	$(say) 'image: $(IMAGE_DIR)/keyturn.tar, $(IMAGE) for linux/amd64 and linux/arm64'
	@for arch in amd64 arm64; do \
		GOOS=linux GOARCH=$$arch $(BUILD) -o '$(IMAGE_DIR)'/linux_$$arch/ ./cmd/... || exit 1; done
	@go run -C tests/tools/image . -version '$(VERSION)' -name '$(IMAGE)' -license '$(CURDIR)/LICENSE' \
		-binaries '$(abspath $(IMAGE_DIR))' -out '$(abspath $(IMAGE_DIR))/keyturn.tar'

#? clean: remove what was built here; the caches stay
clean:
	@rm -rf bin
