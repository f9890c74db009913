package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

// raceWarning begins what the race detector writes to the log of a program.
const raceWarning = "WARNING: DATA RACE"

// tellRace writes a line if the log has a data race. Most tests do not read the logs of their programs, but .ci/gotest fails a run for such a line,
// which must begin without an indent.
func (p *Process) tellRace(to io.Writer) {
	file, err := os.Open(p.logFile)
	if err != nil {
		return // A test may have removed the log of a program that it has not waited for.
	}
	defer file.Close()
	log := follower{r: bufio.NewReader(file)}
	if _, found, _ := log.find(raceWarning); found {
		fmt.Fprintf(to, "%s in the log of %s\n", raceWarning, p.name)
	}
}
