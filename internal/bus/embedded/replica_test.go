package embedded

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/keyturn/keyturn/internal/telemetry"
)

// replicaEnv has the options of a server that this test binary is to run instead of tests, so that a test can kill it as a crash does.
const replicaEnv = "KEYTURN_TEST_REPLICA"

// replicaOptions are those of one server in a process of its own.
type replicaOptions struct {
	Options
	// Health is the address that serves its readiness.
	Health string
}

// runReplica runs the server of replicaEnv until the process is told to end.
func runReplica(text string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var options replicaOptions
	if err := json.Unmarshal([]byte(text), &options); err != nil {
		return err
	}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: dialNames}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", options.Health)
	if err != nil {
		return err
	}
	s, err := Start(options.Options, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	defer s.Shutdown()
	probes := &telemetry.Probes{}
	probes.AddReadiness("jetstream", s.Ready)
	web := &http.Server{Handler: probes.Handler(), ReadHeaderTimeout: time.Second}
	defer func() { _ = web.Close() }()
	defer context.AfterFunc(ctx, func() { _ = web.Close() })()
	if err := web.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

// dialNames connects to the DNS of a cluster whose Services all lead to this machine: there is no other for the names of the routes.
func dialNames(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		defer ours.Close()
		if err := answerName(ours); err != nil {
			fmt.Fprintln(os.Stderr, "dns:", err)
		}
	}()
	return theirs, nil
}

// answerName answers one query, in the form that DNS has over TCP.
func answerName(conn net.Conn) error {
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	query := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, query); err != nil {
		return err
	}
	const header = 12
	end := header
	for query[end] != 0 { // each label has its length before it
		end += 1 + int(query[end])
	}
	question := query[header : end+5] // the type and the class follow
	answer := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
	if binary.BigEndian.Uint16(question[len(question)-4:]) == 1 {
		answer[7] = 1
		answer = append(answer, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
	}
	_, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
	return err
}

// deployed returns a file of the configuration of a server in a pod of the StatefulSet.
func deployed(path ...string) (string, error) {
	content, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "..", "deploy"}, path...)...))
	return string(content), err
}

// writeDeployed writes the configuration of one of three servers, for the ports of its routes and the folder with the certificate.
func writeDeployed(dir, keys string, index int, routes []string) (path string, err error) {
	replicas, err := deployed("components", "high-availability", "replicas.conf")
	if err != nil {
		return "", err
	}
	users, err := deployed("programs", "nats.conf")
	if err != nil {
		return "", err
	}
	replicas = strings.Replace(replicas, "listen: 0.0.0.0:6222", `listen: "`+routes[index]+`"`, 1)
	replicas = strings.ReplaceAll(replicas, "/etc/keyturn", keys)
	for i, address := range routes {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return "", err
		}
		pod := fmt.Sprintf("keyturn-actuator-%d.keyturn-nats-routes:", i)
		replicas = strings.Replace(replicas, pod+"6222", pod+port, 1)
	}
	path = filepath.Join(dir, "replicas.conf")
	if err := os.WriteFile(filepath.Join(dir, "nats.conf"), []byte(users), 0o600); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(replicas), 0o600)
}
