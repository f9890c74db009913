package docpages

import "strings"

// Page says how the commands of a page are tested.
type Page struct {
	// Test is the test that runs the commands of the page in order, except those in NotRun. It is empty if NotRun has all.
	Test string
	// NotRun has the beginnings of the commands that no test takes from the page, with the reasons.
	NotRun map[string]string
}

// Why no test runs a command.
const (
	onInstallation = "TestTheCommandsOfThePagesWork"
	noProgram      = "its program is not on every machine that tests"
	builds         = "the test bed builds it with the race detector"
	noKubelet      = "there is no kubelet that kubectl could reach"
	long           = "it takes minutes or hours; the program has tests of its own"
	hub            = "tests/fleet and tests/install have a hub by the same script, and ask it the same at other addresses"
	stored         = "the tests of stores do the same by the store's API"
	oneActuator    = "there is one actuator"
	byHelm         = "TestHelmInstallsUpgradesAndRemovesKeyturn runs it with more values"
	bothForms      = "TestOnePodAndTwoTakeTurns runs it"
)

// Tested has the pages with commands, by their path from the root.
var Tested = map[string]Page{
	"README.md": {onInstallation, map[string]string{
		"make image": "TestTheImage makes the image, and kind is not on every machine that tests", "go build": builds,
		"kubectl -n example get events --field-selector reason=RolloutCompleted --watch": "it does not end",
		"kubectl annotate deployment web":                                                "docs/tutorials/two-pods.md has the same",
	}},
	"docs/tutorials/get-started.md": {onInstallation, map[string]string{
		"kind": noProgram, "make image": "TestTheImage makes the image", "go build": builds, "kubectl delete": "README.md has the same",
	}},
	"docs/tutorials/two-pods.md": {onInstallation, map[string]string{
		"kubectl keyturn check":                "docs/reference/keyturn.md has the same",
		"kubectl keyturn explain":              "no programs run by then; README.md has the same",
		"kubectl label namespace cert-manager": "there are no such namespaces",
	}},
	"docs/tutorials/openbao-to-pods.md": {"", map[string]string{
		"helm": "its chart is in a registry", "kind": noProgram,
		"kubectl": "TestARotationInTheStoreReachesThePods has the store and the operator without charts",
	}},
	"CONTRIBUTING.md":             {"", map[string]string{"make": "it is what runs the tests"}},
	"SECURITY.md":                 {"", map[string]string{"cosign": "not every machine that tests has it; Flux verifies the same signature"}},
	"docs/operate/alerts.md":      {onInstallation, nil},
	"docs/measured/benchmarks.md": {"", map[string]string{"make bench": long}},
	"docs/reference/events.md":    {"", map[string]string{"nats consumer": noProgram}},
	"docs/how-to/install.md": {onInstallation, map[string]string{
		"make image": "TestTheImage makes one with another name", "make release": "TestTheRelease makes all but the image",
		"make publish":                       "the same",
		"kubectl apply -f dist/install.yaml": "TestTheFilesOfAReleaseAreAppliedAsTheyAre", "skopeo": noProgram,
		"kubectl apply -k deploy/": bothForms, "kubectl -n keyturn-system delete -l": bothForms,
		"kubectl -n flux-system create": "TestFluxInstallsKeyturnForACluster makes the Secret",
		"helm":                          byHelm,
		"kubectl keyturn":               "docs/reference/keyturn.md has the same",
		"kubectl -n keyturn-system logs keyturn-test": noKubelet,
		"kubectl delete namespace keyturn-system":     "the next tests wait for it",
	}},
	"docs/how-to/network-and-keys.md": {onInstallation, map[string]string{
		"openssl": "TestTheCommandsOfThePagesWork has keys already", "for program": "the same",
		"kubectl -n keyturn-system create secret": "the same", "kubectl create namespace keyturn-system": "the same",
		"kubectl -n keyturn-system delete secret keyturn-nats-tls": "operations.md has it",
	}},
	"docs/reference/keyturn.md": {onInstallation, map[string]string{
		"go build": builds, "kubectl krew": noProgram,
	}},
	"docs/operate/logs.md": {"", map[string]string{"kubectl -n keyturn-system logs": noKubelet}},
	"docs/how-to/high-availability.md": {onInstallation, map[string]string{
		"kubectl -n keyturn-system delete pvc": oneActuator, "kubectl -n keyturn-system delete pod": oneActuator,
	}},
	"docs/how-to/many-clusters.md": {onInstallation, map[string]string{
		"go install": "the test bed has built nk", "go run": "the program has a test of its own", "nats": hub, "actuator": hub, "watcher": hub,
		"kubectl keyturn": hub,
		"for stream":      hub,
	}},
	"docs/how-to/migrate-from-others.md": {onInstallation, map[string]string{
		"helm uninstall": "the other tool is not installed", "kubectl get deployments,statefulsets,daemonsets": "grep fails where it prints nothing",
		"kubectl annotate deployment web -n shop keyturn.dev/roll-on=openbao": "the workload has the annotation of the other tool by then",
	}},
	"docs/how-to/migrate-from-reloader.md": {"TestTheCommandsOfTheMigrationFromReloaderWork", nil},
	"docs/how-to/notifications.md":         {onInstallation, nil},
	"docs/operate/operations.md": {onInstallation, map[string]string{
		"kubectl keyturn":                                             "docs/reference/keyturn.md has the same",
		"kubectl -n keyturn-system patch pvc":                         "no StorageClass here enlarges volumes",
		"kubectl -n keyturn-system logs":                              noKubelet,
		"kubectl -n keyturn-system delete secret keyturn-nats-routes": oneActuator,
		"kubectl -n keyturn-system rollout restart deployment":        "kubectl refuses a second one within a second",
		"cmctl": noProgram, "go run ./examples/evidence": "the program has tests of its own",
	}},
	"docs/measured/reliability.md":  {"", map[string]string{"make soak": long}},
	"docs/how-to/audit-shippers.md": {onInstallation, map[string]string{"vault": stored, "bao": stored}},
	"docs/operate/troubleshooting.md": {onInstallation, map[string]string{
		"kubectl -n keyturn-system port-forward": noKubelet, "curl": noKubelet, "kubectl -n keyturn-system logs": noKubelet,
		"kubectl keyturn": "docs/reference/keyturn.md has the same",
	}},
	"docs/how-to/upgrade.md": {onInstallation, map[string]string{
		"helm upgrade": byHelm, "kubectl keyturn": "docs/reference/keyturn.md has the same",
	}},
	"docs/how-to/when-to-roll.md": {onInstallation, nil},
}

// Why returns why no test runs a command of the page, or "" if one does.
func (p Page) Why(command string) string {
	for beginning, reason := range p.NotRun {
		if strings.HasPrefix(command, beginning) {
			return reason
		}
	}
	return ""
}
