// Package register has the operator know the one kind of store that tests have. Upstream's file of this name imports all of them, with the SDK
// of each cloud.
package register

import _ "github.com/external-secrets/external-secrets/pkg/provider/vault"
