package suites

import (
	"bufio"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// testResult is the result of a test.
type testResult int

const (
	passed testResult = iota
	failed
	skipped
)

// readResults returns the outcome of each test in a file of results.
func readResults(format, file string) (map[string]testResult, error) {
	parse, ok := map[string]func(io.Reader) (map[string]testResult, error){"go": parseGo, "junit": parseJUnit, "mocha": parseMocha}[format]
	if !ok {
		return nil, fmt.Errorf("unknown format %q; want go, junit or mocha", format)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	results, err := parse(f)
	if err == nil && len(results) == 0 {
		err = errors.New("there are no tests in it")
	}
	return results, err
}

// summarize counts the results.
func summarize(results map[string]testResult) row {
	var n [3]int
	for o := range maps.Values(results) {
		n[o]++
	}
	return row{Passed: n[passed], Failed: n[failed], Skipped: n[skipped]}
}

// parseGo reads the output of go test -json, or of go tool test2json. A test with subtests is not
// counted, because it fails with them. A test that did not end fails.
func parseGo(r io.Reader) (map[string]testResult, error) {
	results := map[string]testResult{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct{ Action, Test string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("%w: %s", err, lines.Text())
		}
		if event.Test == "" {
			continue
		}
		switch event.Action {
		case "run", "fail":
			results[event.Test] = failed
		case "pass":
			results[event.Test] = passed
		case "skip":
			results[event.Test] = skipped
		}
	}
	for _, name := range slices.Collect(maps.Keys(results)) {
		for i, c := range name {
			if c == '/' {
				delete(results, name[:i])
			}
		}
	}
	return results, lines.Err()
}

// parseJUnit reads the file of pytest --junitxml.
func parseJUnit(r io.Reader) (map[string]testResult, error) {
	var suites struct {
		Cases []struct {
			Class   string    `xml:"classname,attr"`
			Name    string    `xml:"name,attr"`
			Failure *struct{} `xml:"failure"`
			Error   *struct{} `xml:"error"`
			Skipped *struct{} `xml:"skipped"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.NewDecoder(r).Decode(&suites); err != nil {
		return nil, err
	}
	results := map[string]testResult{}
	for _, c := range suites.Cases {
		name := c.Class + "." + c.Name
		switch {
		case c.Failure != nil || c.Error != nil:
			results[name] = failed
		case c.Skipped != nil:
			results[name] = skipped
		case results[name] == passed: // it can fail once more when it is torn down
			results[name] = passed
		}
	}
	return results, nil
}

// parseMocha reads the output of mocha's reporter json. Tests of one name are counted as one, which
// fails if one of them does. A hook that fails is a test of its own.
func parseMocha(r io.Reader) (map[string]testResult, error) {
	type test struct {
		FullTitle string `json:"fullTitle"`
	}
	var report struct{ Passes, Failures, Pending []test }
	if err := json.NewDecoder(r).Decode(&report); err != nil {
		return nil, err
	}
	results := map[string]testResult{}
	for o, tests := range map[testResult][]test{passed: report.Passes, failed: report.Failures, skipped: report.Pending} {
		for _, t := range tests {
			name := strings.Join(strings.Fields(t.FullTitle), " ")
			if old, ok := results[name]; !ok || old != failed {
				results[name] = o
			}
		}
	}
	return results, nil
}
