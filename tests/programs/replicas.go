package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// replica is one of several actuators whose embedded servers keep the streams together.
type replica struct {
	// name is that of the pod: the server's, and the identity in the Lease.
	name string
	// nats is where the server listens for clients, routes where it listens for the other servers.
	nats, routes string
	config       string
}

// replicaConfig is the configuration of a server: that of deploy/components/high-availability, but for the addresses and the certificate.
const replicaConfig = `server_name: %s
cluster: {
  name: keyturn
  listen: "%s"
  routes: [%s]
  tls: { cert_file: "%s", key_file: "%s", ca_file: "%s", verify: true, timeout: 5 }
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
		config := fmt.Sprintf(replicaConfig, r.name, r.routes, strings.Join(routes, ", "), cert, key, ca)
		if err := os.WriteFile(r.config, []byte(config), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// StoreDir is where the embedded server of an actuator stores the streams. Replicas are counted from 0, as the pods of a StatefulSet are.
func (p *Programs) StoreDir(replica int) string {
	return filepath.Join(p.options.Dir, fmt.Sprintf("nats-%d", replica))
}

// StartReplica starts one of [Options.Actuators], for the first time or again. It is ready when its server has what the others have, so start
// more than half of them before you wait.
func (p *Programs) StartReplica(replica int, further ...string) (*Program, error) {
	r := p.replicas[replica]
	args := append(p.commonArgs(p.actuatorKubeconfig), "--nats-embedded", "--nats-listen", r.nats, "--nats-store-dir", p.StoreDir(replica),
		"--nats-config", r.config, fmt.Sprintf("--nats-replicas=%d", p.options.Actuators))
	return p.With("POD_NAME="+r.name).start("actuator", p.binaries.Actuator, append(append(args, p.options.ActuatorArgs...), further...))
}
