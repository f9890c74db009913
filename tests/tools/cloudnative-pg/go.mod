// Only the custom resource definitions of the module are taken, so that nothing imports it.
module github.com/keyturn/keyturn/tests/tools/cloudnative-pg

go 1.26.0

require github.com/cloudnative-pg/cloudnative-pg v1.28.1
