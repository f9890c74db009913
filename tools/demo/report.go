package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/keyturn/keyturn/tests/programs"
)

// report writes what happens as it happens: plain lines, coloured on a terminal.
type report struct {
	out    io.Writer
	colour bool
	// start is when the demo began, and step when the current step did.
	start, step time.Time
	// label is that of the last line: consecutive lines show a shared label once.
	label string
	// gap asks for an empty line before the next one.
	gap bool
}

// result is a step in the summary.
type result struct {
	title string
	// ran is false for a step that was not run, because another failed before it.
	ran  bool
	err  error
	took time.Duration
}

// The colours of a terminal.
const (
	bold  = "1"
	dim   = "2"
	red   = "1;31"
	green = "32"
)

func newReport(out *os.File) *report {
	return &report{out: out, colour: isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", start: time.Now()}
}

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (r *report) paint(colour, text string) string {
	if !r.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (r *report) heading(text string) { fmt.Fprintf(r.out, "\n%s\n", r.paint(bold, text)) }

// begin writes the title of a step. A step with number 0 is not numbered.
func (r *report) begin(number int, title string) {
	r.step, r.label, r.gap = time.Now(), "", false
	numbered := "   "
	if number > 0 {
		numbered = fmt.Sprintf("%3d", number)
	}
	fmt.Fprintf(r.out, "\n%s  %s\n", r.paint(bold, numbered), r.paint(bold, title))
}

// line writes one line of a step.
func (r *report) line(label, format string, args ...any) {
	r.separate()
	shown := label
	if label == r.label {
		shown = ""
	}
	r.label = label
	fmt.Fprintf(r.out, "     %s %s\n", r.paint(dim, fmt.Sprintf("%-9s", shown)), fmt.Sprintf(format, args...))
}

// did writes what was done, and when in the step.
func (r *report) did(format string, args ...any) {
	r.line("done", "%7s  %s", seconds(time.Since(r.step)), fmt.Sprintf(format, args...))
}

// Write takes the progress of the test bed, in lines that begin with its name.
func (r *report) Write(progress []byte) (int, error) {
	for line := range strings.Lines(string(progress)) {
		r.did("%s", strings.TrimPrefix(strings.TrimSpace(line), "testbed: "))
	}
	return len(progress), nil
}

// block writes a text, such as the output of a command, below its title.
func (r *report) block(title, text string) {
	fmt.Fprintf(r.out, "\n       %s\n", r.paint(bold, title))
	for line := range strings.Lines(strings.TrimSpace(text)) {
		fmt.Fprintln(r.out, strings.TrimRight("       "+line, " \n"))
	}
	r.label, r.gap = "", true
}

func (r *report) separate() {
	if r.gap {
		fmt.Fprintln(r.out)
	}
	r.gap = false
}

// verdict ends a step, unless the demo was interrupted.
func (r *report) verdict(ctx context.Context, err error) {
	r.separate()
	took := seconds(time.Since(r.step))
	switch {
	case ctx.Err() != nil:
		fmt.Fprintf(r.out, "     %s after %s\n", r.paint(dim, "stopped  "), took)
	case err != nil:
		fmt.Fprintf(r.out, "     %s after %s: %s\n", r.paint(red, "FAILED   "), took, strings.ReplaceAll(err.Error(), "\n", "\n               "))
	default:
		fmt.Fprintf(r.out, "     %s in %s\n", r.paint(green, "ok       "), took)
	}
}

// logTail is how much of a log is shown, in bytes.
const logTail = 4 << 10

// logs writes the ends of the programs' logs, whose files are about to be removed.
func (r *report) logs(running ...*programs.Program) {
	for _, program := range running {
		if program == nil {
			continue
		}
		log := program.Output()
		r.block("end of the "+program.Name()+"'s log", log[max(0, len(log)-logTail):])
	}
}

func (r *report) summary(results []result) {
	width := 0
	for _, result := range results {
		width = max(width, len(result.title))
	}
	r.begin(0, "Summary")
	for i, result := range results {
		word, colour, took := "ok", green, seconds(result.took)
		switch {
		case !result.ran:
			word, colour, took = "not run", dim, ""
		case result.err != nil:
			word, colour = "FAILED", red
		}
		fmt.Fprintf(r.out, "%s  %-*s  %7s  %s\n", r.paint(bold, fmt.Sprintf("%3d", i+1)), width, result.title, took, r.paint(colour, word))
	}
}

// end writes the last line, when the stage is gone.
func (r *report) end(text string) {
	fmt.Fprintf(r.out, "\n     %s, after %s. All processes are stopped.\n\n", r.paint(bold, text), seconds(time.Since(r.start)))
}

// seconds formats a duration for people.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
