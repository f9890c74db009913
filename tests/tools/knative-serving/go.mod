// Only the custom resource definitions of the module are taken, so that nothing imports it.
module github.com/keyturn/keyturn/tests/tools/knative-serving

go 1.26.0

require knative.dev/serving v0.51.0
