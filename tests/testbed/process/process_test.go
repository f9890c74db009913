package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestProcessRuns(t *testing.T) {
	p := Run(t, Options{
		Path: "/bin/sh", Env: []string{"WORD=hello"},
		Args: []string{"-c", `echo "it says $WORD"; echo oops >&2; exec sleep 60`},
	})
	line, err := p.WaitLog(t.Context(), "says")
	if err != nil || line != "it says hello" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := p.WaitLog(t.Context(), "oops"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.WaitLog(ctx, "never said"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want a deadline", err)
	}
	memory, err := p.Memory()
	if err != nil || memory.RSS <= 0 || memory.Peak < memory.RSS {
		t.Errorf("%+v, %v", memory, err)
	}
	if _, err := p.CPU(); err != nil {
		t.Error(err)
	}

	p.Kill()
	p.Kill()
	var exit *exec.ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("%v, want killed", err)
	}
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("%v, want %v", err, os.ErrProcessDone)
	}
	if _, err := p.WaitLog(t.Context(), "never said"); !errors.Is(err, ErrExited) {
		t.Errorf("%v, want %v", err, ErrExited)
	}
	if _, err := p.Memory(); err == nil {
		t.Error("a process that has ended has memory")
	}
}

func TestStopKillsWhoDoesNotListen(t *testing.T) {
	p := Run(t, Options{
		Path: "/bin/sh", Args: []string{"-c", `trap "" TERM; echo ready; while :; do sleep 1; done`},
	})
	if _, err := p.WaitLog(t.Context(), "ready"); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := p.Stop(50 * time.Millisecond); !errors.As(err, &exit) {
		t.Errorf("%v, want killed", err)
	}
}

func TestStartProcessFails(t *testing.T) {
	_, err := Start(Options{Path: "/no/such/binary", LogFile: t.TempDir() + "/log"})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want %v", err, os.ErrNotExist)
	}
}

// orphanMaker is the argument that makes this test binary start a child and wait to be killed.
const orphanMaker = "make-orphan"

func makeOrphan() {
	p, err := Start(Options{Path: "/bin/sleep", Args: []string{"60"}, LogFile: os.DevNull})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.Pid())
	os.Exit(map[bool]int{true: 1}[p.Wait() != nil])
}

func TestChildDiesWithItsParent(t *testing.T) {
	parent := exec.Command(os.Args[0], orphanMaker)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the parent has not started a child: %s", line)
	}
	if err := syscall.Kill(child, 0); err != nil {
		t.Fatalf("the child is not there: %v", err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	testkit.Eventually(t, "the child is gone", func() bool { return !alive(child) })
}

// alive reports whether a process that is not our child runs. A process that has ended remains as a zombie until init waits
// for it.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
