package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// replica is one of several actuators whose servers, each beside its own, keep the streams together.
type replica struct {
	// name is that of the pod: the server's, and the identity in the Lease.
	name string
	// nats is where the server listens for clients, routes where it listens for the other servers.
	nats, routes string
	config       string
}

// replicaConfig is the configuration of a server: that of deploy/components/high-availability, but for the addresses, the certificates and the users.
const replicaConfig = `server_name: %[1]s
listen: "%[2]s"
tls: { cert_file: "%[5]s", key_file: "%[6]s" }
cluster: {
  name: keyturn
  listen: "%[3]s"
  routes: [%[4]s]
  ping_interval: "2s"
  ping_max: 2
  tls: { cert_file: "%[5]s", key_file: "%[6]s", ca_file: "%[7]s", verify: true, timeout: 5 }
}
`

// makeReplicas chooses the addresses of the actuators and writes the configurations of their servers.
func (p *Programs) makeReplicas(cp *testbed.ControlPlane) error {
	ports, err := process.FreePorts(2 * p.options.Actuators)
	if err != nil {
		return err
	}
	var routes []string
	for i := range p.options.Actuators {
		r := replica{
			name: fmt.Sprintf("keyturn-actuator-%d", i),
			nats: process.Address(ports[2*i]), routes: process.Address(ports[2*i+1]),
			config: filepath.Join(p.options.Dir, fmt.Sprintf("nats-%d.conf", i)),
		}
		p.replicas, routes = append(p.replicas, r), append(routes, `"nats://`+r.routes+`"`)
	}
	ca, cert, key := cp.Certificate()
	for _, r := range p.replicas {
		config := fmt.Sprintf(replicaConfig, r.name, r.nats, r.routes, strings.Join(routes, ", "), cert, key, ca)
		if err := os.WriteFile(r.config, []byte(config), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// StoreDir is where the NATS beside an actuator stores the streams. Replicas are counted from 0, as the pods of a StatefulSet are.
func (p *Programs) StoreDir(replica int) string {
	return filepath.Join(p.options.Dir, fmt.Sprintf("nats-%d", replica))
}

// Pod is one of [Options.Actuators], with its NATS beside it.
type Pod struct {
	// Name is what the Lease calls the actuator.
	Name string
	// NATS and Actuator are what runs in the containers.
	NATS, Actuator *Program
}

// StartReplica starts one of [Options.Actuators], for the first time or again. It is ready when its server has what the others have, so start
// more than half of them before you wait.
func (p *Programs) StartReplica(replica int, further ...string) (*Pod, error) {
	r := p.replicas[replica]
	named := p.With("POD_NAME=" + r.name)
	nats, err := named.startNATS(r.config, p.StoreDir(replica))
	if err != nil {
		return nil, err
	}
	args := append(p.commonArgs(p.actuatorKubeconfig),
		"--nats-url", "nats://"+r.nats, "--nats-ca", p.natsCA, "--nats-replicas", strconv.Itoa(len(p.replicas)))
	actuator, err := named.start("actuator", p.binaries.Actuator, append(append(args, p.options.ActuatorArgs...), further...))
	if err != nil {
		nats.Kill()
		return nil, err
	}
	return &Pod{Name: r.name, NATS: nats, Actuator: actuator}, nil
}

// AwaitReady fails a test unless both containers are ready within a limit each, as the pod then is.
func (p *Pod) AwaitReady(t testing.TB, limit time.Duration) {
	t.Helper()
	p.NATS.AwaitReady(t, limit)
	p.Actuator.AwaitReady(t, limit)
}

// Kill ends both like a crash of their node, and waits for them.
func (p *Pod) Kill() {
	p.Actuator.Kill()
	p.NATS.Kill()
}
