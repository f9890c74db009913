package kubelet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// fileVariable names the file that the process of a pod reads. The process is a copy of the program that calls Main.
const fileVariable = "KEYTURN_TEST_POD_FILE"

// ReloadPath is the path that makes the process of a pod read its file again. The method is POST.
const ReloadPath = "/-/reload"

// Main runs the process of a pod, and returns its exit code. It returns false if this program was not started as one. It must be
// called first in main or TestMain.
func Main() (code int, is bool) {
	file := os.Getenv(fileVariable)
	if file == "" {
		return 0, false
	}
	if err := serve(file, os.Stdout, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// serve serves the content of the file, as it was last read, on an address that it writes to out. It ends when in ends.
func serve(file string, out io.Writer, in io.Reader) error {
	var mu sync.Mutex
	var has []byte
	read := func() error {
		content, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			return fmt.Errorf("reading the configuration: %w", err)
		}
		mu.Lock()
		has = content
		mu.Unlock()
		return nil
	}
	if err := read(); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = w.Write(has)
	})
	mux.HandleFunc("POST "+ReloadPath, func(w http.ResponseWriter, _ *http.Request) {
		if err := read(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Fprintln(out, listener.Addr())
	_, _ = io.Copy(io.Discard, in)
	_ = server.Close()
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// process is the process of a pod.
type process struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	address string
}

func start(file string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	cmd := exec.Command(self)
	cmd.Env, cmd.Stderr = []string{fileVariable + "=" + file, "GORACE=atexit_sleep_ms=0"}, os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a pod's process: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a pod's process: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a pod's process: %w", err)
	}
	p := &process{cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("a pod's process does not listen: %w", err)
	}
	p.address = strings.TrimSpace(line)
	return p, nil
}

func (p *process) stop() {
	_ = p.stdin.Close()
	_ = p.cmd.Wait()
}
