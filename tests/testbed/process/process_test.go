package process

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

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
	testkit.Must(t, err)
	testkit.Must(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	testkit.Must(t, err)
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the parent has not started a child: %s", line)
	}
	if err := syscall.Kill(child, 0); err != nil {
		t.Fatalf("the child is not there: %v", err)
	}
	testkit.Must(t, parent.Process.Kill())
	_ = parent.Wait()
	testkit.Eventually(t, "the child is gone", func() bool { return !alive(child) })
}

// alive reports whether a process that is not our child runs. A process that has ended remains as a zombie until init waits
// for it.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
