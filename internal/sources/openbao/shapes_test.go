package openbao

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// shape is a form in which log shippers deliver lines.
type shape struct {
	name string
	body func(lines [][]byte) []byte
	// foreign is how many things in it are no line.
	foreign int
}

// eachLine returns the lines, each in a form of its own, and each with an end.
func eachLine(format func(line string) string) func([][]byte) []byte {
	return func(lines [][]byte) (body []byte) {
		for _, line := range lines {
			body = append(append(body, format(string(line))...), '\n')
		}
		return body
	}
}

// joined returns all lines, with something between, before and behind them.
func joined(before, between, behind string) func([][]byte) []byte {
	return func(lines [][]byte) []byte {
		return slices.Concat([]byte(before), bytes.Join(lines, []byte(between)), []byte(behind))
	}
}

// inJSON returns a value as JSON.
func inJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// spaced returns a line with space between all that it has, and with ends of lines if there are to be some.
func spaced(line, end string) string {
	var text bytes.Buffer
	if err := json.Indent(&text, []byte(line), "", "  "); err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(text.String(), "\n", end)
}

func shapes() []shape {
	version := regexp.MustCompile(`"version":(\d+)`)
	inField := func(name string) func(string) string {
		return func(line string) string { return `{"` + name + `":` + inJSON(line) + `}` }
	}
	all := func(lines [][]byte) string { return string(joined("", "\n", "\n")(lines)) }
	return []shape{
		{name: "plain lines", body: eachLine(func(line string) string { return line })},
		{name: "lines of another system", body: eachLine(func(line string) string { return line + "\r" })},
		{name: "several in a line", body: joined("", "", "")},
		{name: "several in a line, with spaces", body: joined(" ", " ", " ")},
		{name: "with spaces in a line", body: eachLine(func(line string) string { return spaced(line, " ") })},
		{name: "over many lines", body: eachLine(func(line string) string { return spaced(line, "\n") })},
		{name: "with the fields in another order", body: eachLine(func(line string) string { return string(parsed([]byte(line))) })},
		{name: "with numbers as text", body: eachLine(func(line string) string { return version.ReplaceAllString(line, `"version":"$1"`) })},
		{name: "with numbers that have a fraction", body: eachLine(func(line string) string { return version.ReplaceAllString(line, `"version":$1.0`) })},
		{name: "an array", body: joined("[", ",", "]")},
		{name: "an array with a value in each line", body: joined("[\n", ",\n", "\n]\n")},
		{name: "an array of strings", body: func(lines [][]byte) []byte {
			var texts []string
			for _, line := range lines {
				texts = append(texts, string(line))
			}
			return []byte(inJSON(texts))
		}},
		{name: "a string in each line", body: eachLine(func(line string) string { return inJSON(line) })},
		{name: "the field log, beside others", body: eachLine(func(line string) string {
			return `{"date":1795834020.1,"stream":"stdout","logtag":"F","log":` + inJSON(line) + `,"kubernetes":{"pod_name":"bao-0","labels":{"app":"bao"}}}`
		})},
		{name: "the field message", body: eachLine(inField("message"))},
		{name: "the field msg, with all lines", body: func(lines [][]byte) []byte { return []byte(inField("msg")(all(lines))) }},
		{name: "the field log, with lines without an end", body: func(lines [][]byte) []byte {
			return []byte(inField("log")(string(joined("", "", "")(lines))))
		}},
		{name: "the log of a container, as Docker writes it", body: eachLine(func(line string) string {
			return `{"log":` + inJSON(line+"\n") + `,"stream":"stdout","time":"2026-11-28T03:06:00.6Z"}`
		})},
		{name: "an object in a field", body: eachLine(func(line string) string { return `{"cluster":"a","audit":` + line + `}` })},
		{name: "an object in objects", body: eachLine(func(line string) string { return `{"event":{"original":[` + line + `]},"type":"audit"}` })},
		{name: "an object beside its text", body: eachLine(func(line string) string {
			return `{"log":` + inJSON(line) + "," + line[1:]
		})},
		{name: "a log of a container runtime", body: eachLine(func(line string) string { return "2026-11-28T03:01:00.6Z stdout F " + line })},
		{name: "the prefix @cee:", body: eachLine(func(line string) string { return "<134>Nov 28 03:01:00 bao-0 vault[7]: @cee: " + line })},
		{name: "the prefix of syslog, with braces", body: eachLine(func(line string) string {
			return `<134>1 2026-11-28T03:01:00.6Z bao-0 openbao 7 audit [meta sequenceId="1" tag="{a}"] ` + line
		})},
		{name: "a time in brackets", body: eachLine(func(line string) string { return "[2026-11-28T03:01:00.6Z] " + line })},
		{name: "an array of a time and a record", body: eachLine(func(line string) string { return `[1795834020.1,{"log":` + inJSON(line) + `}]` })},
		{name: "the field entry", body: eachLine(inField("entry"))},
		{name: "a push to Loki", body: func(lines [][]byte) []byte {
			var values [][]string
			for _, line := range lines {
				values = append(values, []string{"1795834020100000000", string(line)})
			}
			return []byte(`{"streams":[{"stream":{"app":"bao"},"values":` + inJSON(values) + `}]}`)
		}},
		{name: "wrapped twice", body: eachLine(func(line string) string { return inField("message")(inField("log")(line)) })},
		{name: "in the quotes of logfmt", body: eachLine(func(line string) string { return "level=info msg=" + strconv.Quote(line) + " n=1" })},
		{name: "a bulk request, whose actions are no lines", foreign: 3, body: eachLine(func(line string) string {
			return "{\"index\":{}}\n" + inField("message")(line)
		})},
		{name: "among the log of the server", foreign: 3, body: eachLine(func(line string) string {
			return "2026-11-28T03:01:00.600Z [INFO]  core: vault is unsealed\n" + line
		})},
		{name: "with a value of more than a megabyte", body: eachLine(func(line string) string {
			return strings.Replace(line, `"request":{`, `"request":{"data":{"x":"`+strings.Repeat(`\"{é`, 400_000)+`"},`, 1)
		})},
	}
}
