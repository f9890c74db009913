// Package testkit has tools that the tests of all packages share: waiting for a condition, files, golden ones too, running a program under
// test, and comparing errors. It imports no package of Keyturn, so that every package can use it in its tests.
//
// Tools that need more are separate packages: natstest runs a NATS server, apitest the API server of an empty cluster, traces receives spans, and
// manifests has the YAML of secret stores and issuers. One that needs less is, too, because programs import it through tests/testbed: running bounds
// waits by the time in which the machine ran.
package testkit
