package openbao

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/vault/api"
	"k8s.io/apimachinery/pkg/util/wait"
)

// authConfig selects how to obtain a token of the store: set exactly one field. Default BAO_TOKEN or VAULT_TOKEN if there is a single store.
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
	// TokenFile is the path of the service account token. Default: where Kubernetes mounts it.
	TokenFile string `json:"tokenFile"`
}

const defaultServiceToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// resolve checks the fields and sets defaults.
func (a *authConfig) resolve() []error {
	var problems []error
	methods := 0
	for _, set := range []bool{a.Token != "", a.TokenFile != "", a.AppRole != nil, a.Kubernetes != nil} {
		if set {
			methods++
		}
	}
	switch {
	case methods == 0:
		problems = append(problems, errors.New("auth: is empty, want one of token, tokenFile, appRole, kubernetes"))
	case methods > 1:
		problems = append(problems, errors.New("auth: has several methods, want one of token, tokenFile, appRole, kubernetes"))
	}
	if a.AppRole != nil {
		problems = append(problems, a.AppRole.resolve()...)
	}
	if a.Kubernetes != nil {
		problems = append(problems, a.Kubernetes.resolve()...)
	}
	return problems
}

func (a *appRoleAuth) resolve() []error {
	var problems []error
	if (a.RoleID == "") == (a.RoleIDFile == "") {
		problems = append(problems, errors.New("auth.appRole: want one of roleId and roleIdFile"))
	}
	if a.SecretIDFile == "" {
		problems = append(problems, errors.New("auth.appRole.secretIdFile: is empty, want the path of a file"))
	}
	a.Mount = orDefault(strings.Trim(a.Mount, "/"), "approle")
	if !isPath(a.Mount) {
		problems = append(problems, errors.New("auth.appRole.mount: is not the path of an auth method, want one such as approle"))
	}
	return problems
}

func (k *kubernetesAuth) resolve() []error {
	var problems []error
	if k.Role == "" {
		problems = append(problems, errors.New("auth.kubernetes.role: is empty, want the name of a role"))
	}
	k.Mount = orDefault(strings.Trim(k.Mount, "/"), "kubernetes")
	k.TokenFile = orDefault(k.TokenFile, defaultServiceToken)
	if !isPath(k.Mount) {
		problems = append(problems, errors.New("auth.kubernetes.mount: is not the path of an auth method, want one such as kubernetes"))
	}
	return problems
}

// logsIn reports whether a login can return a new token at any time.
func (a *authConfig) logsIn() bool { return a.AppRole != nil || a.Kubernetes != nil }

// given returns the configured token. Its file is read each time, because it may be replaced.
func (a *authConfig) given() (string, error) {
	if a.TokenFile == "" {
		return a.Token, nil
	}
	return readSecret("auth.tokenFile", a.TokenFile)
}

// login requests a token from the store with the credentials.
func login(ctx context.Context, requests *api.Client, path string, data map[string]any) (*api.SecretAuth, error) {
	granted, err := requests.Logical().WriteWithContext(ctx, path, data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("logging in at %s: %w", path, plain(err))
	case granted == nil || granted.Auth == nil || granted.Auth.ClientToken == "":
		return nil, fmt.Errorf("logging in at %s: %w", path, errAnswer)
	}
	return granted.Auth, nil
}

// credentials returns the path of the login and what to write there.
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

// readSecret returns the content of a file that holds one secret.
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

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

const (
	// maxLoginDelay is the maximum delay after a login that failed.
	maxLoginDelay = time.Minute
	// maxRefusedDelay is the maximum delay after an AppRole login that the store refused. Five refused logins lock the role for 15 minutes, and the
	// count is reset after 15 minutes without one, so the delay exceeds that after at most four.
	maxRefusedDelay = 16 * time.Minute
	// unansweredDelay is the delay after a login to which the store gave no verdict.
	unansweredDelay = time.Second
)

// loginFailures spaces logins that fail. The zero loginFailures has none.
type loginFailures struct {
	sent    map[string]any // the credentials of the last failure
	err     error
	again   time.Time
	backoff wait.Backoff
}

// recent returns the last failure if it is too early to log in again with these credentials, and otherwise nil. Other credentials may be used at
// once, because they may be right.
func (f *loginFailures) recent(sent map[string]any, now time.Time) error {
	if f.err == nil || !now.Before(f.again) || !maps.Equal(f.sent, sent) {
		return nil
	}
	return f.err
}

// note records a failure. locks means that the store locks credentials that it refuses too often.
func (f *loginFailures) note(sent map[string]any, err error, locks bool, now time.Time) {
	if f.err == nil || !maps.Equal(f.sent, sent) {
		*f = loginFailures{sent: sent, backoff: wait.Backoff{Duration: minLogin, Factor: 6, Jitter: 0.1, Steps: math.MaxInt, Cap: maxLoginDelay}}
		if locks {
			f.backoff.Cap = maxRefusedDelay
		}
	}
	f.err = err
	f.again = now.Add(f.delay(code(err)))
}

// delay returns how long to wait after an answer with that status, or after none, which is 0.
func (f *loginFailures) delay(answered int) time.Duration {
	switch {
	case rejected(answered):
		return f.backoff.Step()
	case answered >= http.StatusBadRequest && answered < http.StatusInternalServerError:
		return minLogin // A rate limit, for example. The credentials were not judged, so nothing is locked.
	}
	return unansweredDelay
}
