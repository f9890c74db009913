// Only the custom resource definitions of the module are taken, so that nothing imports it.
module github.com/keyturn/keyturn/tests/tools/helm-controller

go 1.26.0

require github.com/fluxcd/helm-controller v1.4.3
