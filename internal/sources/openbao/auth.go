package openbao

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// authConfig is the method to get a token of the store: exactly one field. Default BAO_TOKEN or VAULT_TOKEN if there is a single store.
type authConfig struct {
	Token      string          `json:"token"`
	TokenFile  string          `json:"tokenFile"`
	AppRole    *appRoleAuth    `json:"appRole"`
	Kubernetes *kubernetesAuth `json:"kubernetes"`
}

type appRoleAuth struct {
	RoleID       string `json:"roleId"`
	RoleIDFile   string `json:"roleIdFile"`
	SecretIDFile string `json:"secretIdFile"`
	Mount        string `json:"mount"` // the path of the auth method; default approle
}

type kubernetesAuth struct {
	Role      string `json:"role"`
	Mount     string `json:"mount"`     // the path of the auth method; default kubernetes
	TokenFile string `json:"tokenFile"` // of the service account; default: the path at which Kubernetes mounts it
}

const defaultServiceToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

func (a *authConfig) resolve() []error {
	var problems []error
	complain := func(text string) { problems = append(problems, errors.New(text)) }
	methods := slices.DeleteFunc([]bool{a.Token != "", a.TokenFile != "", a.AppRole != nil, a.Kubernetes != nil}, func(set bool) bool { return !set })
	switch {
	case len(methods) == 0:
		complain("auth: is empty, want one of token, tokenFile, appRole, kubernetes")
	case len(methods) > 1:
		complain("auth: has several methods, want one of token, tokenFile, appRole, kubernetes")
	}
	if role := a.AppRole; role != nil {
		if (role.RoleID == "") == (role.RoleIDFile == "") {
			complain("auth.appRole: want one of roleId and roleIdFile")
		}
		if role.SecretIDFile == "" {
			complain("auth.appRole.secretIdFile: is empty, want the path of a file")
		}
		if role.Mount = cmp.Or(strings.Trim(role.Mount, "/"), "approle"); !isPath(role.Mount) {
			complain("auth.appRole.mount: is not the path of an auth method, want one such as approle")
		}
	}
	if account := a.Kubernetes; account != nil {
		if account.Role == "" {
			complain("auth.kubernetes.role: is empty, want the name of a role")
		}
		account.TokenFile = cmp.Or(account.TokenFile, defaultServiceToken)
		if account.Mount = cmp.Or(strings.Trim(account.Mount, "/"), "kubernetes"); !isPath(account.Mount) {
			complain("auth.kubernetes.mount: is not the path of an auth method, want one such as kubernetes")
		}
	}
	return problems
}

// logsIn reports whether a login can return a new token at any time.
func (a *authConfig) logsIn() bool { return a.AppRole != nil || a.Kubernetes != nil }

// given returns the configured token. It reads the token file each time, because that may be replaced.
func (a *authConfig) given() (string, error) {
	if a.TokenFile == "" {
		return a.Token, nil
	}
	return readSecret("auth.tokenFile", a.TokenFile)
}

// credentials returns the path of the login and the data to write there.
func (a *authConfig) credentials() (path string, data map[string]any, err error) {
	if a.Kubernetes != nil {
		token, err := readSecret("auth.kubernetes.tokenFile", a.Kubernetes.TokenFile)
		return "auth/" + a.Kubernetes.Mount + "/login", map[string]any{"role": a.Kubernetes.Role, "jwt": token}, err
	}
	roleID := a.AppRole.RoleID
	if a.AppRole.RoleIDFile != "" {
		if roleID, err = readSecret("auth.appRole.roleIdFile", a.AppRole.RoleIDFile); err != nil {
			return "", nil, err
		}
	}
	secretID, err := readSecret("auth.appRole.secretIdFile", a.AppRole.SecretIDFile)
	return "auth/" + a.AppRole.Mount + "/login", map[string]any{"role_id": roleID, "secret_id": secretID}, err
}

// readSecret returns the content of a file with a single secret.
func readSecret(field, path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: reading: %w", field, err)
	}
	secret := strings.TrimSpace(string(content))
	if secret == "" {
		return "", fmt.Errorf("%s: %s is empty, want the secret in it", field, path)
	}
	return secret, nil
}
