package chart

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/docpages"
)

// Behind its Service the API server may have another port than 443 and 6443, and that is the one that many network plugins see.
func TestThePageOpensAnotherPortOfTheAPIServer(t *testing.T) {
	blocks := blocksOfPage(t, "network-and-keys.md", "## Where the API server is")
	if len(blocks) != 1 {
		t.Fatalf("the section has %d blocks, want one for a port", len(blocks))
	}
	const want = "map[ports:[map[port:443] map[port:6443] map[port:16443]]]"
	all := objects(t, built(t, overlay(t, blocks[0], "base", "projector", "projections/example")))
	for _, program := range []string{"watcher", "actuator", "keys", "projector"} {
		if rules := egressOf(all, program); !slices.Contains(rules, want) {
			t.Errorf("egress of the %s: got %v, want %s", program, rules, want)
		}
	}
	for _, program := range []string{"watcher", "actuator", "keys"} {
		rules := egressOf(rendered(t, "networkPolicy: {apiServer: {ports: [443, 16443]}}"), program)
		if want := "map[ports:[map[port:443] map[port:16443]]]"; !slices.Contains(rules, want) {
			t.Errorf("egress of the %s with the chart: got %v, want %s", program, rules, want)
		}
	}
}

// waysOut are the rules for egress of all policies that select the pods of a program, as texts.
func waysOut(all map[string]object, program string) []string {
	var rules []string
	for name, policy := range all {
		kind, name, _ := strings.Cut(name, " "+systemNamespace+"/keyturn-")
		if kind == "NetworkPolicy" && strings.Contains(fmt.Sprint(policy.at("spec", "podSelector")), "keyturn-"+program) {
			rules = append(rules, egressOf(all, name)...)
		}
	}
	slices.Sort(rules)
	return rules
}

// The watcher reads every Secret, and whoever takes it over sends them where it may.
func TestThePageClosesTheOtherWaysOut(t *testing.T) {
	const (
		api   = "map[ports:[map[port:443] map[port:6443]] to:[map[ipBlock:map[cidr:10.96.0.1/32]] map[ipBlock:map[cidr:172.18.0.2/32]]]]"
		dns   = "map[ports:[map[port:53 protocol:UDP] map[port:53]] to:[map[namespaceSelector:map[matchLabels:map[kubernetes.io/metadata.name:kube-system]] podSelector:map[matchLabels:map[k8s-app:kube-dns]]]]]"
		nats  = "map[ports:[map[port:4222]] to:[map[podSelector:map[matchLabels:map[app.kubernetes.io/name:keyturn-actuator]]]]]"
		store = "map[ports:[map[port:8200]] to:[map[namespaceSelector:map[matchLabels:map[kubernetes.io/metadata.name:openbao]]]]]"
		more  = "secretStores: {enabled: true}\nopenbaoAudit: {enabled: true}\n" + aProjector
	)
	blocks := blocksOfPage(t, "network-and-keys.md", "## Close the other ways out")
	if len(blocks) != 2 {
		t.Fatalf("the section has %d blocks, want one for kustomize and one for the chart", len(blocks))
	}
	dir := overlay(t, blocks[0], "base", "secret-stores", "openbao-audit", "projector", "projections/example")
	for way, all := range map[string]map[string]object{"kustomize": objects(t, built(t, dir)), "the chart": rendered(t, blocks[1]+more)} {
		for program, want := range map[string][]string{
			"watcher": {api, nats, dns, store}, "actuator": {api, dns}, "keys": {api, dns}, "audit": {nats, dns, store}, "projector": {api, nats, dns},
		} {
			slices.Sort(want)
			if diff := cmp.Diff(want, waysOut(all, program)); diff != "" {
				t.Errorf("with %s, egress of the %s (-want +got):\n%s", way, program, diff)
			}
		}
	}
}

func TestANATSOfOnesOwnIsAmongTheOnlyPeers(t *testing.T) {
	const more = "nats: {url: 'tls://nats.example.com:4223'}\nopenbaoAudit: {enabled: true}\n" + aProjector
	for values, want := range map[string]string{
		"networkPolicy: {to: [{ipBlock: {cidr: 10.0.0.1/32}}]}\n": "map[ports:[map[port:4223]] to:[map[ipBlock:map[cidr:10.0.0.1/32]]]]",
		"": "map[ports:[map[port:4223]]]",
	} {
		for _, program := range []string{"watcher", "actuator", "audit", "projector"} {
			if got := waysOut(rendered(t, values+more), program); !slices.Contains(got, want) {
				t.Errorf("with %q, egress of the %s: got %q, want %s", values, program, got, want)
			}
		}
	}
}

// kubectl evaluates the template of a command on what the API server answers.
func TestTheCommandsOfThePageFindTheAPIServer(t *testing.T) {
	const (
		service = "{spec: {clusterIPs: [10.96.0.1, 'fd00::1'], ports: [{name: https, port: 443, targetPort: 6443}]}}"
		behind  = "{items: [{addressType: IPv4, endpoints: [{addresses: [172.18.0.2]}, {addresses: [172.18.0.3]}], ports: [{name: https, port: 6443}]}]}"
	)
	page := testkit.ReadFile(t, "../../docs/how-to/network-and-keys.md")
	asks := regexp.MustCompile(`^kubectl get (service|endpointslices) .* -o jsonpath='(.*)'$`)
	got := map[string]string{}
	for _, command := range docpages.Commands(page) {
		match := asks.FindStringSubmatch(command.Line)
		if match == nil {
			continue
		}
		var answer any
		testkit.Must(t, yaml.Unmarshal([]byte(map[string]string{"service": service, "endpointslices": behind}[match[1]]), &answer))
		template := jsonpath.New(match[1])
		if err := template.Parse(match[2]); err != nil {
			t.Fatalf("%s: %v", command.Line, err)
		}
		var out bytes.Buffer
		if err := template.Execute(&out, answer); err != nil {
			t.Fatalf("%s: %v", command.Line, err)
		}
		got[match[1]] = out.String()
	}
	want := map[string]string{"service": "10.96.0.1 fd00::1 443\n", "endpointslices": "172.18.0.2 172.18.0.3 6443\n"}
	if !maps.Equal(got, want) {
		t.Errorf("the commands of the page print %q, want %q", got, want)
	}
}
