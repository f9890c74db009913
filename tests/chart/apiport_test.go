package chart

import (
	"fmt"
	"strings"
	"testing"
)

// Behind its Service the API server may have another port than 443 and 6443, and that is the one that many network plugins see.
func TestThePageOpensAnotherPortOfTheAPIServer(t *testing.T) {
	blocks := blocksOfPage(t, "### Where the API server is")
	if len(blocks) != 2 {
		t.Fatalf("the section has %d blocks, want one for a port and one for addresses", len(blocks))
	}
	for i, want := range []string{
		"map[ports:[map[port:443] map[port:6443] map[port:16443]]]",
		"map[ports:[map[port:443] map[port:6443]] to:[map[ipBlock:map[cidr:10.96.0.1/32]] map[ipBlock:map[cidr:172.18.0.2/32]]]]",
	} {
		dir := t.TempDir()
		overlay := fmt.Sprintf("resources: [%s]\ncomponents: [%s, %s]\n",
			deployFrom(t, dir, "base"), deployFrom(t, dir, "components/projector"), deployFrom(t, dir, "projections/example"))
		write(t, dir, "kustomization.yaml", overlay+blocks[i])
		all := objects(t, built(t, dir))
		for _, program := range []string{"watcher", "actuator", "keys", "projector"} {
			if rules := egressOf(all, program); !strings.Contains(strings.Join(rules, "\n")+"\n", want+"\n") {
				t.Errorf("block %d, egress of the %s: got %v, want %s", i, program, rules, want)
			}
		}
	}
	for _, program := range []string{"watcher", "actuator", "keys"} {
		rules := egressOf(rendered(t, "networkPolicy: {apiServer: {ports: [443, 16443]}}"), program)
		if want := "map[ports:[map[port:443] map[port:16443]]]\n"; !strings.Contains(strings.Join(rules, "\n")+"\n", want) {
			t.Errorf("egress of the %s with the chart: got %v, want %s", program, rules, want)
		}
	}
}
