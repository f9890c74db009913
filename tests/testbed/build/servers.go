package build

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// The servers that [All] knows, and the tools.
const (
	Etcd               = "etcd"
	APIServer          = "kube-apiserver"
	ControllerManager  = "kube-controller-manager"
	Node               = "simulated-node"
	Kubectl            = "kubectl"
	Vault              = "vault"
	ExternalSecrets    = "external-secrets"
	CertManager        = "cert-manager"
	ArgoRollouts       = "argo-rollouts"
	ArgoCD             = "argo-cd"
	SecretsStore       = "secrets-store-csi-driver"
	PrometheusOperator = "prometheus-operator"
	JaegerServer       = "jaeger"
	Promtool           = "promtool"
	NATS               = "nats-server"
	NATSKeys           = "nk"
	Helm               = "helm"

	SourceController    = "source-controller"
	KustomizeController = "kustomize-controller"
	HelmController      = "helm-controller"
	CloudNativePG       = "cloudnative-pg"
	KnativeServing      = "knative-serving"
	ClickHouseOperator  = "clickhouse-operator"
)

const (
	etcdVersion               = "v3.6.8"
	kubernetesVersion         = "v1.36.3"
	oldestKubernetesVersion   = "v1.30.14"
	vaultVersion              = "v1.13.0"
	externalSecretsVersion    = "v0.20.4"
	oldestESOVersion          = "v0.16.1" // v0.16.0 is on no module proxy
	certManagerVersion        = "v1.21.2"
	argoRolloutsVersion       = "v1.10.1"
	argoCDVersion             = "v3.5.7"
	secretsStoreVersion       = "v1.5.5"
	prometheusOperatorVersion = "v0.93.1"
	jaegerVersion             = "v1.76.0"
	promtoolVersion           = "v0.313.5"
	helmVersion               = "v4.3.1"
	oldestHelmVersion         = "v3.18.5"
	helmControllerVersion     = "v1.4.3"
	cloudNativePGVersion      = "v1.28.1"
	knativeVersion            = "v0.51.0"
	clickHouseVersion         = "v0.0.0-20211101130143-50134723c388"
	fluxVersion               = "v1.9.5"
	natsVersion               = "v2.15.2"
	oldestNATSVersion         = "v2.11.0"
	natsKeysVersion           = "v0.4.16"
)

// server describes how to build a binary.
type server struct {
	version string
	// revision is the revision of a main package of ours, or of the files in trimmed. It follows the version, and must change with each change
	// of them, so that an outdated binary in the cache is not used. It is empty if all is the server's own.
	revision string
	// tools is the folder under tests/tools with the module that pins the server and its dependencies.
	tools string
	// module is the server's own module.
	module string
	// pkg is the main package, as tools sees it.
	pkg string
	// trimmed is a folder under tests/tools with files that the build uses in place of those of the server's module, so that it imports less.
	// Empty means none. It is only for a server that has its own binary.
	trimmed string
	// program is the binary that acts as this server when it is called by its name, if several servers share one. Empty means that the
	// server has its own binary.
	program string
	// flags are further linker flags.
	flags string
	// tags are build tags.
	tags []string
	// kinds copies the custom resource definitions of an operator out of its module.
	kinds func(moduleDir, dir string) error
	// extract copies further files out of the server's module into the folder of the binary.
	extract func(moduleDir, dir string) error
}

// kubernetesFlags returns the flags that set the version of a release build. Without them the servers report v0.0.0-master,
// which misleads clients and feature gates that depend on the version.
func kubernetesFlags(version string) string {
	numbers := strings.Split(version, ".")
	return " -X k8s.io/component-base/version.gitVersion=" + version +
		" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=" + numbers[1]
}

// controlPlane is the binary of all servers of the control plane. They share most of their packages, which are compiled and linked once.
const controlPlane = "control-plane"

// controlPlaneRevision contains the versions of its servers.
const controlPlaneRevision = "-" + kubernetesVersion + "-etcd-" + etcdVersion + "-2"

func servers() map[string]server {
	part := func(module, version string) server {
		return server{
			version: version, tools: "control-plane", module: module, pkg: ".", program: controlPlane, revision: controlPlaneRevision,
			flags: kubernetesFlags(kubernetesVersion),
		}
	}
	command := func(version, tools, name string) server {
		return server{
			version: version, tools: tools, module: "k8s.io/kubernetes", pkg: "k8s.io/kubernetes/cmd/" + name,
			flags: kubernetesFlags(version),
		}
	}
	kubernetes := func(name string) server {
		switch {
		case Oldest():
			return command(oldestKubernetesVersion, "kubernetes-oldest", name)
		case name == Kubectl:
			return command(kubernetesVersion, "control-plane", name)
		}
		return part("k8s.io/kubernetes", kubernetesVersion)
	}
	flux := func(name string) server {
		module := "github.com/fluxcd/" + name
		return server{
			version: fluxVersion, tools: name, module: module, pkg: module, kinds: extractCRDs("config/crd/bases"),
		}
	}
	return map[string]server{
		SourceController:    flux(SourceController),
		KustomizeController: flux(KustomizeController),
		Etcd:                part("go.etcd.io/etcd/server/v3", etcdVersion),
		APIServer:           kubernetes(APIServer),
		ControllerManager:   kubernetes(ControllerManager),
		Node:                part("k8s.io/kubernetes", kubernetesVersion),
		Kubectl:             kubernetes(Kubectl),
		Vault: {
			version: vaultVersion, revision: "-2", tools: "vault", module: "github.com/hashicorp/vault", pkg: ".",
		},
		ExternalSecrets: externalSecrets(),
		CertManager: {
			version: certManagerVersion, revision: "-1", tools: "cert-manager", module: "github.com/cert-manager/cert-manager",
			pkg: ".", kinds: extractCRDs("deploy/crds"),
		},
		ArgoRollouts: {
			version: argoRolloutsVersion, tools: "argo-rollouts", module: "github.com/argoproj/argo-rollouts",
			pkg: "github.com/argoproj/argo-rollouts/cmd/rollouts-controller", kinds: extractCRDs("manifests/crds"),
		},
		ArgoCD: {
			version: argoCDVersion, revision: "-1", tools: "argo-cd", module: "github.com/argoproj/argo-cd/v3", pkg: ".",
			kinds: extractCRDs("manifests/crds"), extract: extractArgoCD,
		},
		PrometheusOperator: {
			version: prometheusOperatorVersion, tools: "prometheus-operator", module: "github.com/prometheus-operator/prometheus-operator",
			pkg:   "github.com/prometheus-operator/prometheus-operator/cmd/operator",
			kinds: extractCRDs("example/prometheus-operator-crd"),
		},
		// It mounts volumes on nodes, and there are none. Only its kinds are needed.
		SecretsStore: {
			version: secretsStoreVersion, tools: "secrets-store-csi-driver", module: "sigs.k8s.io/secrets-store-csi-driver",
			kinds: extractCRDs("config/crd/bases"),
		},
		// Of these, too, only the kinds are needed: they communicate with their pods, or with a registry.
		CloudNativePG: {
			version: cloudNativePGVersion, tools: "cloudnative-pg", module: "github.com/cloudnative-pg/cloudnative-pg",
			kinds: extractCRDs("config/crd/bases"),
		},
		KnativeServing: {
			version: knativeVersion, tools: "knative-serving", module: "knative.dev/serving", kinds: extractCRDs("config/core/300-resources"),
		},
		ClickHouseOperator: {
			version: clickHouseVersion, tools: "clickhouse-operator", module: "github.com/altinity/clickhouse-operator",
			kinds: extractCRD("deploy/operator/clickhouse-operator-install-bundle.yaml", "clickhouseinstallations.clickhouse.altinity.com"),
		},
		HelmController: {
			version: helmControllerVersion, tools: "helm-controller", module: "github.com/fluxcd/helm-controller",
			kinds: extractCRDs("config/crd/bases"),
		},
		JaegerServer: {
			version: jaegerVersion, tools: "jaeger", module: "github.com/jaegertracing/jaeger",
			pkg: "github.com/jaegertracing/jaeger/cmd/all-in-one",
		},
		NATS: nats(),
		NATSKeys: {
			version: natsKeysVersion, tools: "nats", module: "github.com/nats-io/nkeys", pkg: "github.com/nats-io/nkeys/nk",
		},
		Promtool: {
			// Without the tag, it includes a client for every cloud in which Prometheus can discover targets.
			version: promtoolVersion, tools: "promtool", module: "github.com/prometheus/prometheus", tags: []string{"remove_all_sd"},
			pkg: "github.com/prometheus/prometheus/cmd/promtool",
		},
		Helm: helm(),
	}
}

func externalSecrets() server {
	const module = "github.com/external-secrets/external-secrets"
	s := server{
		version: externalSecretsVersion, revision: "-1", tools: "external-secrets", module: module, pkg: module,
		trimmed: "external-secrets/trimmed", kinds: extractCRDs("config/crds/bases"),
	}
	if Oldest() {
		s.version, s.tools = oldestESOVersion, "external-secrets-oldest"
	}
	return s
}

func nats() server {
	const module = "github.com/nats-io/nats-server/v2"
	s := server{version: natsVersion, tools: "nats", module: module, pkg: module}
	if Oldest() {
		s.version, s.tools = oldestNATSVersion, "nats-oldest"
	}
	return s
}

func helm() server {
	s := server{version: helmVersion, tools: "helm", module: "helm.sh/helm/v4"}
	if Oldest() {
		s.version, s.tools, s.module = oldestHelmVersion, "helm-oldest", "helm.sh/helm/v3"
		// These flags set the version of Kubernetes that it assumes without a cluster. A release build sets it in its
		// Makefile.
		s.flags = " -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=33"
	}
	s.pkg = s.module + "/cmd/helm"
	return s
}

// toolsDir returns the folder of the module that pins the server.
func (s server) toolsDir(ctx context.Context) (string, error) {
	root, err := moduleDir(ctx, ".", modulePath)
	return filepath.Join(root, "tests", "tools", s.tools), err
}

// download downloads the server's module into a scratch folder, and returns its folder.
func (s server) download(ctx context.Context, place *scratch) (string, error) {
	tools, err := s.toolsDir(ctx)
	if err != nil {
		return "", err
	}
	if _, err := goCommand(ctx, tools, []string{"mod", "download", s.module}, place.env...); err != nil {
		return "", err
	}
	return moduleDir(ctx, tools, s.module, place.env...)
}

// folder returns the name of the cache folder with the server's binary. It changes with everything that is in the binary.
func (s server) folder(name string) string {
	if s.program != "" {
		return s.program + s.revision
	}
	return name + "-" + s.version + s.revision
}

// title returns what is being built, for the progress line.
func (s server) title(name string) string {
	if s.program != "" {
		return "etcd " + etcdVersion + " and the servers of Kubernetes " + kubernetesVersion
	}
	return name + " " + s.version
}

// serverNames returns the names of all servers that the test bed knows, sorted.
func serverNames() []string { return slices.Sorted(maps.Keys(servers())) }

func findServer(name string) (server, error) {
	s, ok := servers()[name]
	if !ok {
		return server{}, fmt.Errorf("unknown server %q: one of %q", name, serverNames())
	}
	return s, nil
}
