# Run `make` to list the targets.
MAKEFLAGS += --no-print-directory
# One set of flags, that of a release, so that the programs, the tests, their servers and the linter compile each package once. Without the tag,
# gRPC's request traces import text/template, which calls methods by name: the linker then keeps every method of every Kubernetes type, a third of
# the binary and of its memory.
TAGS := grpcnotrace
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(filter-out -trimpath -tags=$(TAGS),$(shell go env GOFLAGS)) -trimpath -tags=$(TAGS))

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
IMAGE ?= keyturn:$(VERSION)
IMAGE_DIR ?= bin/image
# How long `make fuzz` fuzzes each target.
FUZZTIME ?= 30s
# Tests that compare a file of the repository with the code, or with the version in deploy/chart/Chart.yaml, and write it with -update.
GENERATED := TestReference|TestStreamManifests|TestGolden
GENERATED_PACKAGES := ./internal/bus ./internal/events ./internal/inspect ./internal/plugin ./internal/workload ./cmd/watcher ./cmd/actuator ./cmd/keyturn \
	./tests/monitoring ./tests/docs ./tests/chart

# The tools of `make test` are built once per version of the tool and of Go, in the user's cache.
TOOLS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/keyturn/tools
version = $(shell sed -n 's|^require $1 ||p' tests/tools/$2/go.mod)
tool = $(TOOLS)/$2-$(call version,$1,$2)-$(shell go env GOVERSION)/$2
LINT := $(call tool,github.com/golangci/golangci-lint/v2,golangci-lint)
GOTESTSUM := $(call tool,gotest.tools/gotestsum,gotestsum)
GOVULNCHECK := $(call tool,golang.org/x/vuln,govulncheck)
GO_TEST = @GOTESTSUM='$(GOTESTSUM)' .ci/gotest $@

say = @printf '\n==> %s %s\n' "$$(date +%T)"

.DEFAULT_GOAL := help
.PHONY: help demo demo-secrets demo-trace test test-all test-nightly vet unit unit-race core servers e2e e2e-race e2e-nightly e2e-oldest slowest yardstick soak-short \
	bench bench-nightly scale soak fuzz lint vulncheck fmt generate generate-check build image release publish clean

#? help: list the targets
help:
	@sed -n 's/^#? \([a-z0-9-]*\): /  make \1\t/p' Makefile | expand -t 26

DEMO_SERVERS := etcd kube-apiserver kube-controller-manager simulated-node
demo-secrets: DEMO_SERVERS += $(if $(BAO_BIN),,vault) external-secrets cert-manager
demo-trace: DEMO_SERVERS += jaeger

#? demo: show rollouts on a local control plane
#? demo-secrets: show a rotation in Vault, or the OpenBao that BAO_BIN names, reach the pods
#? demo-trace: show the trace of a change in Jaeger, which stays up until you press Enter
demo demo-secrets demo-trace:
	$(say) '$@: building what is not in the cache yet; docs/explanation/concepts.md is worth reading meanwhile'
	@go run ./tests/testbed/cmd/build $(DEMO_SERVERS) ./cmd/actuator ./cmd/watcher ./cmd/keyturn
	$(say) '$@: starting a control plane and both programs on this machine'
	@go run ./tools/demo $(patsubst demo%,%,$@)

# A tier runs its targets in turn, and ends with what it cost, its slowest tests and what passed only when it was run again.
TIER := .ci/tier

#? test: vet, unit tests, and the tests on a control plane that hold each promise
test:
	@$(TIER) test vet unit core

#? test-all: the linter, the race detector, and all tests that need no peer of test-nightly; what lands has passed it
test-all:
	@$(TIER) test-all lint servers unit-race e2e

#? test-nightly: all of e2e with the race detector and with peers, packaging, floods, the oldest versions, a short soak, and known vulnerabilities
test-nightly:
	@$(TIER) test-nightly e2e-race e2e-nightly e2e-oldest soak-short vulncheck

#? vet: check the code with go vet and gofmt
vet:
	$(say) 'vet: checking the code'
	@go vet ./...
	@unformatted=$$("$$(go env GOROOT)/bin/gofmt" -l cmd examples internal tests tools) && [ -z "$$unformatted" ] || { printf 'gofmt changes %s\n' $$unformatted; exit 1; }

# Those that need no server which must be built.
UNIT := ./internal/... ./cmd/... ./examples/... ./tools/... ./tests/docs ./tests/monitoring ./tests/rights ./tests/testkit/... ./tests/testbed/build ./tests/testbed/process
# RUN chooses tests by their names, in each target: make e2e E2E=./tests RUN=TestValuesNeverLeave
RUN :=
SELECTED = $(if $(RUN),-run '$(RUN)')

#? unit: run the unit tests (RUN=TestName)
unit: $(GOTESTSUM)
	$(say) 'unit: testing the packages'
	$(GO_TEST) '$(UNIT)' -vet=off -short -p 4 $(SELECTED)

#? unit-race: run the unit tests, also the slow ones, with the race detector
unit-race: export CGO_ENABLED := 1
unit-race: $(GOTESTSUM)
	$(say) 'unit-race: testing the packages with the race detector'
	$(GO_TEST) '$(UNIT)' -race -vet=off -p 4 $(SELECTED)

# The tests of programs are run each time: Go's cache of results does not see what a test compiles and starts.
ON_SERVERS := -vet=off -count=1 -timeout 60m -p 1 -parallel 4
CORE := ^($(subst $() $(),|,$(strip $(shell sed '/^\#/d' tests/core.txt))))$$

#? core: run the tests of tests/core.txt on a control plane
core: $(GOTESTSUM)
	$(say) 'core: testing on a control plane'
	@go run ./tests/testbed/cmd/build $(DEMO_SERVERS) ./cmd/actuator ./cmd/watcher ./cmd/keyturn
	$(GO_TEST) ./tests $(ON_SERVERS) -short -run '$(or $(RUN),$(CORE))'

# The last five are needed for their custom resource definitions only.
SERVERS := $(DEMO_SERVERS) kubectl nats-server nk helm $(if $(BAO_BIN),,vault) external-secrets cert-manager argo-rollouts source-controller \
	kustomize-controller secrets-store-csi-driver cloudnative-pg knative-serving clickhouse-operator helm-controller
#? servers: build the servers of test-all that are not in the cache yet
servers:
	$(say) 'servers: building those that are not in the cache yet'
	@go run ./tests/testbed/cmd/build $(SERVERS)

# One package at a time, and so one control plane. The unit tests of secret stores are here once more, because some need a real one.
E2E := ./tests ./tests/install ./tests/reloader ./tests/chart ./tests/fleet ./internal/sources/openbao
#? e2e: run the tests on a control plane (E2E=./tests RUN=TestName for some of them)
e2e: $(GOTESTSUM) $(if $(RUN),,servers)
	$(say) 'e2e: testing on a control plane'
	$(GO_TEST) '$(E2E)' $(ON_SERVERS) $(SELECTED)

#? e2e-race: run them with the race detector, also in the programs, and with peers and floods
e2e-race: export CGO_ENABLED := 1
e2e-race: export KEYTURN_TEST_RACE := 1
e2e-race: export KEYTURN_TEST_NIGHTLY := 1
e2e-race: $(GOTESTSUM)
	$(say) 'e2e-race: building the servers that are not in the cache yet'
	@CGO_ENABLED=0 go run ./tests/testbed/cmd/build
	$(say) 'e2e-race: testing on a control plane with the race detector'
	$(GO_TEST) '$(E2E)' -race $(ON_SERVERS) $(SELECTED)

NIGHTLY := ./internal/actuate ./tests/monitoring ./tests/testbed ./tests/image ./tests/release ./tools/...
#? e2e-nightly: test packaging, the test bed, alerts, the programs in tools, and thousands of stories of the actuator
e2e-nightly: export KEYTURN_TEST_NIGHTLY := 1
e2e-nightly: $(GOTESTSUM)
	$(say) 'e2e-nightly: testing packaging, the test bed, the programs in tools, and thousands of stories of the actuator'
	$(GO_TEST) '$(NIGHTLY)' $(ON_SERVERS) $(SELECTED)

# What would notice an older version: the chart from the first change to its removal, the permissions, the admission policies, a rotation, a hub, and
# who undoes a roll.
OLDEST := TestHelmInstallsUpgradesAndRemovesKeyturn|TestEachProgramHasExactlyTheRightsThatItNeeds
OLDEST := $(OLDEST)|TestARotationInTheStoreReachesThePods|TestOneMoreClusterDisturbsNobody|TestASpokeIsHeldToItsOwnCluster
OLDEST := $(OLDEST)|TestTheActuatorsToken|TestTheWatchersTokenWritesNothing|TestReloadersStrategiesAreAllowedByName
OLDEST := $(OLDEST)|TestWhatKubectlUndoesIsToldFromWhatAToolPutsBack

#? e2e-oldest: run some of e2e on the oldest Kubernetes, Helm, NATS and External Secrets; the first run spends a quarter of an hour building them
e2e-oldest: export KEYTURN_TEST_VERSIONS := oldest
e2e-oldest: $(GOTESTSUM)
	$(say) 'e2e-oldest: testing on the oldest supported versions'
	$(GO_TEST) './tests ./tests/install ./tests/fleet' $(ON_SERVERS) -run '$(OLDEST)'

slowest:
	@grep -hE '"Action":"(pass|fail|skip)"' bin/events-*.json | grep -v '"Test":"[^"]*/' | $(GOTESTSUM) tool slowest --num 10 --threshold 1s

#? yardstick: print the processor seconds that this machine takes to compile Go's standard library
yardstick:
	@.ci/yardstick

#? bench: measure latency and cost against a bare watch and patch (BENCH_FLAGS="-reloader" adds Reloader's mode)
bench:
	$(say) 'bench: measuring the programs against a bare watch and patch'
	@go run ./tools/bench $(BENCH_FLAGS)

#? bench-nightly: measure everything, also a large cluster and 5,000 Deployments that have pods, and fail if a target is missed; takes hours
bench-nightly:
	$(say) 'bench-nightly: measuring everything, also a large cluster, with pods and in the mode of Reloader'
	@go run ./tools/bench -strict -reloader -large -fan-out 5000 $(BENCH_FLAGS)

#? scale: measure a three-server NATS under the events of 50, 100 and 200 clusters (SCALE_FLAGS="-write docs/measured/scale.md")
scale:
	$(say) 'scale: measuring a three-server NATS under the events of many clusters'
	@go run ./tools/scale $(SCALE_FLAGS)

#? soak: kill, suspend and cut off everything for an hour, and count what was lost or doubled (SOAK_FLAGS="-duration 10m -seed 1")
soak:
	$(say) 'soak: changing sources while the programs, NATS, the API server and etcd are killed'
	@go run ./tools/soak $(SOAK_FLAGS)

soak-short:
	@$(MAKE) soak SOAK_FLAGS='-duration 5m -seed 1'

#? fuzz: fuzz each decoder for FUZZTIME
fuzz:
	@grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' internal cmd | while IFS=: read -r file func; do \
		printf '\n==> %s fuzz: %s in %s for $(FUZZTIME)\n' "$$(date +%T)" "$${func#func }" "$$(dirname "$$file")"; \
		go test "./$$(dirname "$$file")" -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZTIME) || exit 1; done

#? lint: check the code against .golangci.yml
lint: $(LINT)
	$(say) 'lint: checking the code against .golangci.yml'
	@$(LINT) run --allow-parallel-runners

#? vulncheck: look for known vulnerabilities in what the programs call, if their database can be reached
vulncheck: $(GOVULNCHECK)
	$(say) 'vulncheck: looking for known vulnerabilities in what the programs call'
	@GOVULNCHECK='$(GOVULNCHECK)' .ci/vulncheck

#? fmt: format the code
fmt: $(LINT)
	@$(LINT) fmt

$(LINT): PACKAGE := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(LINT): LDFLAGS := -X main.version=$(call version,github.com/golangci/golangci-lint/v2,golangci-lint)
$(GOTESTSUM): PACKAGE := gotest.tools/gotestsum
$(GOVULNCHECK): PACKAGE := golang.org/x/vuln/cmd/govulncheck
$(LINT) $(GOTESTSUM) $(GOVULNCHECK):
	$(say) 'building $(@F) in the cache, once; golangci-lint takes some minutes'
	@mkdir -p $(@D)
	@cd tests/tools/$(@F) && CGO_ENABLED=0 go build -ldflags='-s -w $(LDFLAGS)' -o $@.$$$$ $(PACKAGE) && mv $@.$$$$ $@

#? generate: write the generated files: references of flags, metrics and values, stream manifests, golden events, the version
generate:
	@go test $(GENERATED_PACKAGES) -run '$(GENERATED)' -count 1 -update

#? generate-check: check that the generated files are up to date
generate-check:
	$(say) 'generate-check: comparing the generated files with the code; `make generate` writes them'
	@go test $(GENERATED_PACKAGES) -run '$(GENERATED)'

# What else decides the bytes of a binary than the commit and the version is fixed here. Of the settings that `go env -w` wrote, only where modules
# come from is kept.
build image release: export GOFLAGS :=
build image release: export GOEXPERIMENT :=
build image release: export GOWORK := off
build image release: export GOTOOLCHAIN := local
build image release: export GOFIPS140 := off
build image release: export GOAMD64 := v1
build image release: export GOARM64 := v8.0
MODULES := GOPROXY GOSUMDB GOPRIVATE GONOPROXY GONOSUMDB GOINSECURE GOAUTH GOMODCACHE GOCACHE
GO_SETTINGS := $(foreach setting,$(MODULES),$(setting)="$$(go env $(setting))") GOENV=off

BUILD := $(GO_SETTINGS) CGO_ENABLED=0 go build -trimpath -buildvcs=auto -tags $(TAGS) -ldflags='-s -w -X main.version=$(VERSION)'

# What the image has.
PROGRAMS := ./cmd/actuator ./cmd/keyturn ./cmd/watcher

#? build: build static binaries in bin/: keyturn, also as kubectl-keyturn, watcher and actuator
build:
	$(say) 'build: bin/keyturn, also as the plugin bin/kubectl-keyturn, bin/watcher and bin/actuator, $(VERSION)'
	@$(BUILD) -o bin/ ./cmd/...
	@ln -sf keyturn bin/kubectl-keyturn && ln -sf keyturn bin/kubectl_complete-keyturn

#? image: build the container image for amd64 and arm64 as an OCI archive, without a daemon (IMAGE, IMAGE_DIR)
image:
	$(say) 'image: $(IMAGE_DIR)/keyturn.tar, $(IMAGE) for linux/amd64 and linux/arm64'
	@for arch in amd64 arm64; do GOOS=linux GOARCH=$$arch $(BUILD) -o '$(IMAGE_DIR)'/linux_$$arch/ $(PROGRAMS) || exit 1; done
	@go run -C tests/tools/image . -version '$(VERSION)' -name '$(IMAGE)' -license '$(CURDIR)/LICENSE' \
		-binaries '$(abspath $(IMAGE_DIR))' -out '$(abspath $(IMAGE_DIR))/keyturn.tar'

# Where a release is published: the image keyturn, the manifests for Flux and the chart.
REGISTRY ?= ghcr.io/keyturn
PLATFORMS := linux_amd64 linux_arm64 darwin_amd64 darwin_arm64 windows_amd64
RELEASE = go run -C tests/tools/release .
RELEASE_OF = -version '$(VERSION)' -registry '$(REGISTRY)' -out '$(CURDIR)/dist' \
	-commit "$$(git rev-parse HEAD)" -time "$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}"
SIGNED = $(if $(SIGNING_KEY),-key '$(abspath $(SIGNING_KEY))')
# A clone of the commit, whose only tag is the version: Go writes what it finds of tags into binaries, and ignored files are no part of a release.
SOURCE := $(CURDIR)/bin/release/source

#? release: make the files of a release in dist/ (VERSION=v0.1.0; REGISTRY, and SIGNING_KEY=cosign.key with COSIGN_PASSWORD)
release:
	@[ -z "$$(git status --porcelain)" ] || { echo 'release: commit your changes first, a release is made of a commit' >&2; exit 1; }
	@$(RELEASE) $(RELEASE_OF) -root '$(CURDIR)' $(SIGNED) -check
	@rm -rf bin/release && git -c advice.detachedHead=false clone -q --no-tags . '$(SOURCE)' && git -C '$(SOURCE)' update-ref 'refs/tags/$(VERSION)' HEAD
	@$(MAKE) -C '$(SOURCE)' image VERSION='$(VERSION)' IMAGE='$(REGISTRY)/keyturn:$(VERSION)' IMAGE_DIR='$(CURDIR)/bin/release'
	$(say) 'release: the plugin for $(words $(PLATFORMS)) platforms'
	@cd '$(SOURCE)' && for platform in $(PLATFORMS); do \
		GOOS=$${platform%_*} GOARCH=$${platform#*_} $(BUILD) -o '$(CURDIR)'/bin/release/plugin/$$platform/ ./cmd/keyturn || exit 1; done
	$(say) 'release: dist/, $(VERSION)'
	@rm -rf dist && $(RELEASE) $(RELEASE_OF) -root '$(SOURCE)' -image '$(CURDIR)/bin/release/keyturn.tar' \
		-plugin '$(CURDIR)/bin/release/plugin' $(SIGNED)
	@cd dist && ls -lh

#? publish: push the image, the manifests and the chart in dist/ with their signatures, to the REGISTRY that they were made for
publish:
	@$(RELEASE) publish -dist '$(CURDIR)/dist'

#? clean: remove bin/ and dist/; the caches stay
clean:
	@rm -rf bin dist
