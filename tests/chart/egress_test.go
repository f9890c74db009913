package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/testkit"
)

// egressOf are the rules of the policy of a program, as texts.
func egressOf(all map[string]object, program string) []string {
	rules, _ := all["NetworkPolicy "+systemNamespace+"/keyturn-"+program].at("spec", "egress").([]any)
	var texts []string
	for _, rule := range rules {
		texts = append(texts, fmt.Sprint(rule))
	}
	return texts
}

func TestWhereTheAPIServerIsCanBeNamed(t *testing.T) {
	const (
		named = "networkPolicy: {apiServer: {cidrs: [10.96.0.1/32, 172.18.0.2/32], ports: [443, 8443]}, dns: {ports: [5353]}}"
		api   = "map[ports:[map[port:443] map[port:8443]] to:[map[ipBlock:map[cidr:10.96.0.1/32]] map[ipBlock:map[cidr:172.18.0.2/32]]]]"
		dns   = "map[ports:[map[port:5353 protocol:UDP] map[port:5353]]]"
		calls = "map[ports:[map[port:443]]]"
		nats  = "map[ports:[map[port:4222]] to:[map[podSelector:map[matchLabels:map[app.kubernetes.io/name:keyturn-actuator]]]]]"
	)
	tests := []struct {
		name, values, program string
		want                  []string
	}{
		{"the watcher reaches it, NATS and DNS", "{" + named + "}", "watcher", []string{api, dns, nats}},
		{"the actuator reaches it and DNS", "{" + named + "}", "actuator", []string{api, dns}},
		{"so does the job", "{" + named + "}", "keys", []string{api, dns}},
		{"the actuator calls chat services", "{" + named + ", env: {KEYTURN_NOTIFY_CONFIG: /a}}", "actuator", []string{api, calls, dns}},
		{"so the watcher does not", "{" + named + ", env: {KEYTURN_NOTIFY_CONFIG: /a}}", "watcher", []string{api, dns, nats}},
		{
			"the actuator calls within Reloader's own policy", "{" + named + ", reloader: {netpol: {enabled: true}, webhookUrl: 'https://w.example.com:443/hook'}}",
			"actuator",
			[]string{api, calls, dns},
		},
		{
			"what Reloader's own policy restricts may be in another's Secret",
			"{" + named + ", reloader: {netpol: {enabled: true}, deployment: {env: {existing: {mine: {ALERT_ON_RELOAD: on, ALERT_WEBHOOK_URL: url}}}}}}",
			"actuator",
			[]string{api, calls, dns},
		},
		{"a port of the API server may be that of a webhook", "{" + named + ", reloader: {webhookUrl: 'https://w.example.com:6443'}}", "actuator", []string{api, "map[ports:[map[port:6443]]]", dns}},
		{"both ask a proxy", "{" + named + ", reloader: {deployment: {env: {open: {HTTPS_PROXY: 'https://p.example.com'}}}}}", "watcher", []string{api, calls, dns, nats}},
		{"the watcher asks stores", "{" + named + ", env: {KEYTURN_OPENBAO_CONFIG: /a}}", "watcher", []string{api, calls, dns, nats}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := egressOf(rendered(t, tt.values), tt.program)
			slices.Sort(got)
			want := slices.Sorted(slices.Values(tt.want))
			if !slices.Equal(got, want) {
				t.Errorf("egress:\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
			}
		})
	}
}

func TestTheWatcherReachesTheStoresThatItPolls(t *testing.T) {
	const (
		asks   = "env: {KEYTURN_OPENBAO_CONFIG: /a}"
		anyone = "map[ports:[map[port:8200]]]"
	)
	tests := []struct {
		name, values string
		want         []string
	}{
		{"without stores there is no policy", "{}", nil},
		{"a file of stores", asks, []string{anyone}},
		{"support for External Secrets, as with the component", "secretStores: {enabled: true}", []string{anyone}},
		{"wherever the API server is", "{" + asks + ", networkPolicy: {apiServer: {cidrs: [10.96.0.1/32]}}}", []string{anyone}},
		{
			"among the only peers", "{" + asks + ", networkPolicy: {to: [{ipBlock: {cidr: 10.0.0.0/8}}]}}",
			[]string{"map[ports:[map[port:8200]] to:[map[ipBlock:map[cidr:10.0.0.0/8]]]]"},
		},
		{"without policies there is none", "{" + asks + ", networkPolicy: {enabled: false}}", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			all := rendered(t, tt.values)
			if got := egressOf(all, "secret-stores"); !slices.Equal(got, tt.want) {
				t.Errorf("egress is %q, want %q", got, tt.want)
			}
			policy := all["NetworkPolicy "+systemNamespace+"/keyturn-secret-stores"]
			if got := policy.at("spec", "podSelector", "matchLabels", "app.kubernetes.io/name"); tt.want != nil && got != "keyturn-watcher" {
				t.Errorf("it is for the pods of %v", got)
			}
		})
	}
}

func TestAProgramMayReachMore(t *testing.T) {
	const rule = "map[ports:[map[port:3128]] to:[map[ipBlock:map[cidr:10.0.0.1/32]]]]"
	for program, other := range map[string]string{"watcher": "actuator", "actuator": "watcher"} {
		all := rendered(t, "networkPolicy: {"+program+": {egress: [{ports: [{port: 3128}], to: [{ipBlock: {cidr: 10.0.0.1/32}}]}]}}")
		if got := egressOf(all, program); !slices.Contains(got, rule) || len(got) != len(egressOf(rendered(t, "{}"), program))+1 {
			t.Errorf("egress of the %s: got %s, want %s beside the others", program, strings.Join(got, "\n"), rule)
		}
		if got := egressOf(all, other); slices.Contains(got, rule) {
			t.Errorf("egress of the %s: got %s", other, strings.Join(got, "\n"))
		}
	}
}

// Whoever can write the status of a pod names the address that is called. It is not to be the one of a pod of ours.
func TestReloadInPlaceReachesPodsButThoseOfKeyturn(t *testing.T) {
	t.Parallel()
	all := rendered(t, "reloadInPlace: {enabled: true}")
	want := "map[to:[map[namespaceSelector:map[] podSelector:map[matchExpressions:" +
		"[map[key:app.kubernetes.io/part-of operator:NotIn values:[keyturn]]]]]]]"
	if got := egressOf(all, "reload-in-place"); !slices.Equal(got, []string{want}) {
		t.Errorf("egress is %q, want %s", got, want)
	}
	programs := 0
	for name, one := range all {
		template := one.at("spec", "template")
		if template == nil {
			continue
		}
		programs++
		if part := one.at("spec", "template", "metadata", "labels", "app.kubernetes.io/part-of"); part != "keyturn" {
			t.Errorf("the pods of %s are part of %v", name, part)
		}
	}
	if programs < 2 {
		t.Errorf("there are %d programs", programs)
	}
}

// The API server may be known by a name alone: Gardener sets KUBERNETES_SERVICE_HOST to one in each container.
func TestWhoReachesTheAPIServerReachesDNS(t *testing.T) {
	const values = "{" + aProjector + ", networkPolicy: {apiServer: {ports: [7443]}}}"
	dns := dnsOf(t, values)
	policies := 0
	for name, one := range rendered(t, values) {
		if !strings.Contains(fmt.Sprint(one.at("spec", "egress")), "port:7443") {
			continue
		}
		policies++
		if dns[name] == "" {
			t.Errorf("%s has no rule for DNS", name)
		}
	}
	if policies != 4 {
		t.Errorf("%d policies open the port of the API server, want 4", policies)
	}
}

// dnsOf are the ports of the rule for DNS of each policy that has one, those of helm test among them.
func dnsOf(t *testing.T, values string) map[string]string {
	t.Helper()
	ports := map[string]string{}
	for name, one := range withTests(t, values) {
		rules, _ := one.at("spec", "egress").([]any)
		for _, rule := range rules {
			if text := fmt.Sprint(rule); strings.Contains(text, "protocol:UDP") {
				ports[name] = text
			}
		}
	}
	return ports
}

func TestDNSBehindTheServiceOfOpenShiftIsReached(t *testing.T) {
	const (
		audit = "openbaoAudit: {enabled: true}"
		usual = "map[ports:[map[port:53 protocol:UDP] map[port:53]]]"
		both  = "map[ports:[map[port:53 protocol:UDP] map[port:53] map[port:5353 protocol:UDP] map[port:5353]]]"
	)
	before := dnsOf(t, audit)
	for _, values := range []string{
		"reloader: {isOpenshift: true}", "reloader: {isOpenshift: 'true'}", "reloader: {isOpenshift: true}, networkPolicy: {dns: {ports: [53, 5353]}}",
	} {
		got := dnsOf(t, "{"+audit+", "+values+"}")
		for name, ports := range before {
			if ports != usual || got[name] != both {
				t.Errorf("%s with %s: got %s and without it %s, want both ports", name, values, got[name], ports)
			}
		}
	}
	if len(before) < 4 {
		t.Errorf("got policies %v, want those of each program and of helm test", before)
	}
}

// An overlay replaces the first rule of each policy, as docs/how-to/network-and-keys.md shows.
func TestTheFirstRuleOfEachPolicyIsForTheAPIServer(t *testing.T) {
	all := map[string]object{}
	for document := range strings.SplitSeq(built(t, overlay(t, "", "base")), "\n---\n") { // objects would sort the rules.
		o := object{}
		testkit.Must(t, yaml.Unmarshal([]byte(document), &o))
		all[fmt.Sprintf("%s %v/%v", o["kind"], o.at("metadata", "namespace"), o.at("metadata", "name"))] = o
	}
	for _, program := range []string{"watcher", "actuator", "keys"} {
		if got, want := egressOf(all, program)[0], "map[ports:[map[port:443] map[port:6443]]]"; got != want {
			t.Errorf("the first rule of the %s: got %s, want %s", program, got, want)
		}
	}
}
