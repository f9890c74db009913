package openbao

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/vault/api"
)

// authConfig is how a token of the store is had: one of its fields. BAO_TOKEN or VAULT_TOKEN where there is none; where these
// are empty too, the store is not asked anything.
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
	// Mount is the path of the auth method. Default approle.
	Mount string `json:"mount"`
}

type kubernetesAuth struct {
	Role string `json:"role"`
	// Mount is the path of the auth method. Default kubernetes.
	Mount string `json:"mount"`
	// TokenFile is the service account's token. Default: where Kubernetes puts it.
	TokenFile string `json:"tokenFile"`
}

const defaultServiceToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

func (a *authConfig) resolve() []error {
	var problems []error
	refuse := func(text string) { problems = append(problems, errors.New(text)) }
	given := 0
	for _, one := range []bool{a.Token != "", a.TokenFile != "", a.AppRole != nil, a.Kubernetes != nil} {
		if one {
			given++
		}
	}
	if given > 1 {
		refuse("auth: has several methods, want one of token, tokenFile, appRole, kubernetes")
	}
	if role := a.AppRole; role != nil {
		if (role.RoleID == "") == (role.RoleIDFile == "") {
			refuse("auth.appRole: want one of roleId and roleIdFile")
		}
		if role.SecretIDFile == "" {
			refuse("auth.appRole.secretIdFile: is empty, want the path of a file")
		}
		role.Mount = orDefault(strings.Trim(role.Mount, "/"), "approle")
		if !isPath(role.Mount) {
			refuse("auth.appRole.mount: is not the path of an auth method")
		}
	}
	if role := a.Kubernetes; role != nil {
		if role.Role == "" {
			refuse("auth.kubernetes.role: is empty, want the name of a role")
		}
		role.Mount = orDefault(strings.Trim(role.Mount, "/"), "kubernetes")
		role.TokenFile = orDefault(role.TokenFile, defaultServiceToken)
		if !isPath(role.Mount) {
			refuse("auth.kubernetes.mount: is not the path of an auth method")
		}
	}
	return problems
}

// logsIn tells whether a new token can be had at any time.
func (a *authConfig) logsIn() bool { return a.AppRole != nil || a.Kubernetes != nil }

// given is the token that somebody else takes care of. The file is read each time, for it may have changed.
func (a *authConfig) given() (string, error) {
	if a.TokenFile == "" {
		return a.Token, nil
	}
	return readSecret("auth.tokenFile", a.TokenFile)
}

// login asks the store for a token.
func (a *authConfig) login(ctx context.Context, store *api.Client) (*api.SecretAuth, error) {
	path, data, err := a.credentials()
	if err != nil {
		return nil, err
	}
	answer, err := store.Logical().WriteWithContext(ctx, path, data)
	if err != nil {
		return nil, fmt.Errorf("logging in at %s: %w", path, plain(err))
	}
	if answer == nil || answer.Auth == nil || answer.Auth.ClientToken == "" {
		return nil, fmt.Errorf("logging in at %s: %w", path, errAnswer)
	}
	return answer.Auth, nil
}

// credentials are what is written where to log in.
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

// readSecret reads a file that holds one secret.
func readSecret(field, path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: reading: %w", field, err)
	}
	secret := strings.TrimSpace(string(content))
	if secret == "" {
		return "", fmt.Errorf("%s: %s is empty", field, path)
	}
	return secret, nil
}
