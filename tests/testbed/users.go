package testbed

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// The users of a control plane other than service accounts, as they appear in the audit log.
const (
	adminUser       = "testbed-admin"
	nodeUser        = "testbed-node"
	controllersUser = "system:kube-controller-manager"

	// externalSecretsUser, certManagerUser, argoRolloutsUser and prometheusUser are the users of the operators, FluxUser that of Flux's
	// controllers, and ArgoCDUser that of Argo CD.
	externalSecretsUser = "testbed-external-secrets"
	certManagerUser     = "testbed-cert-manager"
	argoRolloutsUser    = "testbed-argo-rollouts"
	prometheusUser      = "testbed-prometheus-operator"
	FluxUser            = "testbed-flux"
	ArgoCDUser          = "testbed-argo-cd"
)

// mastersGroup may do everything.
const mastersGroup = "system:masters"

// makeUsers creates a random token and a kubeconfig for each user, and writes the file with which the API server
// authenticates them. Users without a group get their permissions from the server's default role bindings.
func (cp *ControlPlane) makeUsers() error {
	cp.tokens = map[string]string{}
	var file strings.Builder
	for user, group := range map[string]string{
		adminUser: mastersGroup, nodeUser: mastersGroup, controllersUser: "",
		externalSecretsUser: mastersGroup, certManagerUser: mastersGroup, argoRolloutsUser: mastersGroup,
		prometheusUser: mastersGroup, FluxUser: mastersGroup, ArgoCDUser: mastersGroup,
	} {
		token := rand.Text()
		cp.tokens[user] = token
		fmt.Fprintf(&file, "%s,%s,%s,%q\n", token, user, user, group)
		if err := writeKubeconfig(cp.kubeconfig(user), cp.url(), cp.pki.ca, user, token); err != nil {
			return err
		}
	}
	if err := os.WriteFile(cp.tokenFile(), []byte(file.String()), 0o600); err != nil {
		return fmt.Errorf("write the tokens: %w", err)
	}
	return nil
}

func (cp *ControlPlane) tokenFile() string { return filepath.Join(cp.dir, "tokens.csv") }

func (cp *ControlPlane) kubeconfig(user string) string {
	return filepath.Join(cp.dir, strings.ReplaceAll(user, ":", "-")+".kubeconfig")
}

func (cp *ControlPlane) url() string { return "https://" + process.Address(cp.ports.apiServer) }

func (cp *ControlPlane) adminConfig() (*rest.Config, error) {
	config, err := cp.tokenConfig(cp.tokens[adminUser])
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

func (cp *ControlPlane) tokenConfig(token string) (*rest.Config, error) {
	ca, err := os.ReadFile(cp.pki.ca)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: cp.url(), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca},
		// The format that is the cheapest to encode and to decode, of built-in kinds, and nothing that loopback would need compressed.
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}, DisableCompression: true,
	}, nil
}
