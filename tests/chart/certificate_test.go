package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
)

// certificateSecret has the certificate of NATS, its key and its CA.
const certificateSecret = "keyturn-nats-tls"

// mounted returns what the pods of a program have of a Secret: the items by name, or "all" of them.
func mounted(program object, secret string) []string {
	var items []string
	volumes, _ := program.at("spec", "template", "spec", "volumes").([]any)
	for _, volume := range volumes {
		source, _ := volume.(map[string]any)["secret"].(map[string]any)
		if source["secretName"] != secret {
			continue
		}
		chosen, some := source["items"].([]any)
		if !some {
			items = append(items, "all")
		}
		for _, item := range chosen {
			items = append(items, fmt.Sprint(item.(map[string]any)["key"]))
		}
	}
	return items
}

// The clients check the server with its CA alone. Whoever takes over one of them cannot pass for the server. The actuator, in the same pod, is one of
// them: see TestWhatParsesTheMessagesOfOthersHasNoToken.
func TestOnlyThePodOfNATSHasItsKey(t *testing.T) {
	components := [][]string{nil, {"cert-manager"}, {"leaf"}, {"high-availability"}}
	for _, base := range []string{"base", "namespaced"} {
		for _, component := range components {
			t.Run(base+" "+strings.Join(component, " "), func(t *testing.T) {
				t.Parallel()
				all := kustomized(t, base, append(component, "openbao-audit")...)
				got := map[string][]string{}
				for name, one := range all {
					if items := mounted(one, certificateSecret); items != nil {
						got[name] = items
					}
					if items := mounted(one, "keyturn-nats-ca"); items != nil {
						t.Errorf("%s mounts the CA: %v", name, items)
					}
				}
				want := map[string][]string{
					"StatefulSet keyturn-system/keyturn-actuator": {"all", "ca.crt"},
					"Deployment keyturn-system/keyturn-watcher":   {"ca.crt"}, "Deployment keyturn-system/keyturn-audit": {"ca.crt"},
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("mounts of %s (-want +got):\n%s", certificateSecret, diff)
				}
			})
		}
	}
}

func TestTheJobMayReadNoCertificateThatItDoesNotMake(t *testing.T) {
	for values, want := range map[string][]string{
		"{}": {
			"create secrets", "get secrets `keyturn-nats-ca`", "get secrets `keyturn-nats-tls`", "update secrets `keyturn-nats-ca`",
			"update secrets `keyturn-nats-tls`",
		},
		"nats: {certificate: cert-manager}": {"create secrets"},
		"nats: {certificate: existing}":     {"create secrets"},
		"nats: {url: nats://nats.nats.svc}": {"create secrets"},
	} {
		all := rendered(t, values)
		if diff := cmp.Diff(want, all["Role keyturn-system/keyturn-keys"]["rules"]); diff != "" {
			t.Errorf("with %s: rights (-want +got):\n%s", values, diff)
		}
		args := fmt.Sprint(all["Job keyturn-system/keyturn-keys"].at("spec", "template", "spec"))
		// Never by the default: with the template of a release before, Flux would keep its finished job, which has made none.
		if want := fmt.Sprintf("--nats-tls=%v", len(want) > 1); !strings.Contains(args, want) {
			t.Errorf("with %s: got %s, want %s", values, args, want)
		}
	}
}

// What cert-manager issues has the names of what the job makes, or a client by one of them would be refused.
func TestTheCertificateOfCertManagerHasTheNamesOfNATS(t *testing.T) {
	all := kustomized(t, "base", "cert-manager")
	spec := all["Certificate keyturn-system/keyturn-nats"]
	names, _ := spec.at("spec", "dnsNames").([]any)
	addresses, _ := spec.at("spec", "ipAddresses").([]any)
	want := []any{
		"keyturn-nats", "keyturn-nats.keyturn-system", "keyturn-nats.keyturn-system.svc", "keyturn-nats.keyturn-system.svc.cluster.local",
		"localhost", "127.0.0.1", "::1",
	}
	testkit.WantEqual(t, "names", want, slices.Concat(names, addresses))
	if spec.at("spec", "secretName") != certificateSecret {
		t.Errorf("the Secret is %v", spec.at("spec", "secretName"))
	}
	for name, one := range all {
		if secret := one.at("spec", "secretName"); secret == "keyturn-nats-ca" {
			t.Errorf("%s writes the Secret of the job's CA", name)
		}
	}
}

// Uninstalling finds the Secrets by their label. One that stays is a certificate that the job of the next installation leaves alone, and that nobody renews.
func TestTheSecretsOfCertManagerHaveTheLabelOfTheOthers(t *testing.T) {
	for _, name := range []string{"keyturn-nats", "keyturn-nats-issuer"} {
		certificate := kustomized(t, "base", "cert-manager")["Certificate keyturn-system/"+name]
		if label := certificate.at("spec", "secretTemplate", "labels", "app.kubernetes.io/part-of"); label != "keyturn" {
			t.Errorf("the Secret of %s is part of %v, want keyturn", name, label)
		}
	}
}
