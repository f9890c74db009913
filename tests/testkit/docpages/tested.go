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
	noKubelet      = "there is no kubelet that kubectl could reach"
	long           = "it takes minutes or hours; the program has tests of its own"
	hub            = "tests/fleet and tests/install have a hub by the same script, and ask it the same at other addresses"
	stored         = "the tests of stores do the same by the store's API"
	oneActuator    = "there is one actuator"
	byHelm         = "TestHelmInstallsUpgradesAndRemovesKeyturn runs it with more values"
)

// Tested has the pages with commands, by their path from the root.
var Tested = map[string]Page{
	"README.md": {onInstallation, map[string]string{
		"make image": "TestTheImage makes the image, and kind is not on every machine that tests", "make demo": long,
		"kubectl -n example get events --field-selector reason=RolloutCompleted --watch": "it does not end",
	}},
	"CONTRIBUTING.md":    {"", map[string]string{"make": "it is what runs the tests"}},
	"SECURITY.md":        {"", map[string]string{"cosign": "its program is not on every machine that tests; Flux verifies the same signature"}},
	"docs/benchmarks.md": {"", map[string]string{"make bench": long}},
	"docs/events.md":     {"", map[string]string{"nats consumer": noProgram}},
	"docs/install.md": {onInstallation, map[string]string{
		"make image": "TestTheImage makes one with another name", "make release": "TestTheRelease makes all but the image",
		"make publish":                       "the same",
		"kubectl apply -f dist/install.yaml": "TestTheFilesOfAReleaseAreAppliedAsTheyAre", "skopeo": noProgram,
		"actuator --version":            "upgrade.md has it in the pod",
		"kubectl -n flux-system create": "TestFluxInstallsKeyturnForACluster makes the Secret",
		"flux push":                     noProgram, "helm": byHelm,
		"openssl": "TestTheCommandsOfThePagesWork has keys already", "for program": "the same",
		"kubectl -n keyturn-system create secret": "the same", "kubectl create namespace keyturn-system": "the same",
		"kubectl -n keyturn-system port-forward": noKubelet, "curl": noKubelet, "docker": noProgram,
		"kubectl -n keyturn-system logs keyturn-test":                                noKubelet,
		"kubectl -n keyturn-system delete secret keyturn-nats-tls":                   "operations.md has it",
		"kubectl -n try get events --field-selector reason=RolloutCompleted --watch": "it does not end",
		"kubectl delete namespace try":                                               "the test deletes it, and does not wait",
		"kubectl delete namespace keyturn-system":                                    "the next tests wait for it",
	}},
	"docs/kubectl-keyturn.md": {onInstallation, map[string]string{
		"go build": "the test bed builds it with the race detector", "kubectl krew": noProgram,
	}},
	"docs/logs.md": {"", map[string]string{"kubectl -n keyturn-system logs": noKubelet}},
	"docs/many-clusters.md": {onInstallation, map[string]string{
		"go install": "the test bed has built nk", "go run": "the program has a test of its own", "nats": hub, "actuator": hub, "watcher": hub,
		"for stream": hub,
	}},
	"docs/migrate-from-others.md": {onInstallation, map[string]string{
		"helm uninstall": "the other tool is not installed", "kubectl get deployments,statefulsets,daemonsets": "grep fails where it prints nothing",
		"kubectl annotate deployment web -n shop keyturn.dev/roll-on=openbao": "the workload has the annotation of the other tool by then",
	}},
	"docs/migrate-from-reloader.md": {"TestTheCommandsOfTheMigrationFromReloaderWork", nil},
	"docs/notifications.md":         {onInstallation, nil},
	"docs/operations.md": {onInstallation, map[string]string{
		"kubectl -n keyturn-system port-forward":                            noKubelet,
		"actuator explain":                                                  "it needs the port",
		"kubectl keyturn":                                                   "docs/kubectl-keyturn.md has the same",
		"kubectl -n keyturn-system patch pvc":                               "no StorageClass here enlarges volumes",
		"kubectl -n keyturn-system logs":                                    noKubelet,
		"kubectl -n keyturn-system delete secret keyturn-nats-routes":       oneActuator,
		"kubectl -n keyturn-system delete pvc data-keyturn-actuator-0 data": oneActuator,
		"kubectl -n keyturn-system delete pvc data-keyturn-actuator-1":      oneActuator,
		"kubectl -n keyturn-system delete pod keyturn-actuator-1":           oneActuator,
		"kubectl -n keyturn-system delete pod keyturn-actuator-0":           oneActuator,
		"kubectl -n keyturn-system rollout restart deployment":              "kubectl refuses a second one within a second",
		"cmctl": noProgram,
	}},
	"docs/reliability.md":   {"", map[string]string{"make soak": long}},
	"docs/secret-stores.md": {onInstallation, map[string]string{"make demo": long, "vault": stored, "bao": stored}},
	"docs/troubleshooting.md": {onInstallation, map[string]string{
		"kubectl -n keyturn-system port-forward": noKubelet, "curl": noKubelet, "kubectl -n keyturn-system logs": noKubelet,
		"actuator": "it is the same in the pod", "kubectl keyturn": "docs/kubectl-keyturn.md has the same",
	}},
	"docs/upgrade.md": {onInstallation, map[string]string{"helm upgrade": byHelm}},
	"docs/when.md":    {onInstallation, nil},
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
